"""The network's training from its initial weights on, with a copy of its neurons at every look."""

from __future__ import annotations

from collections.abc import Iterator

from assay.training import Seeds
from assay.training.two_layer import TwoLayer

from ..learners import Fit, Stages, emerge, initialise
from ..network.learners import train_network
from ..problem import Data


def looks(seeds: Seeds, stages: Stages, features: int, train: Data, fit: Fit) -> Iterator[tuple[int, TwoLayer]]:
    """The initial network at step 0, the two erase-and-step stages at steps 1 and 2, then stage three."""
    start = initialise(seeds, stages, features)
    one, two = emerge(start, *train, stages)
    yield from enumerate((start, one, two))
    for step, net in train_network(two, *train, fit, seeds):
        yield 2 + step, TwoLayer(net.weights.clone(), net.biases.clone(), net.output.clone())
