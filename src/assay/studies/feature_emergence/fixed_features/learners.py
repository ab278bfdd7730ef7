"""The linearised network (NTK)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from assay.training.seeds import Seeds
from assay.training.two_layer import Linearised, TwoLayer, take

from ..learners import PLAIN, Fit, Predictor, detached


def train_linearised(
    start: TwoLayer, inputs: Tensor, labels: Tensor, fit: Fit, seeds: Seeds
) -> Iterator[tuple[int, Predictor]]:
    """The NTK comparator: the model linearised at the same initialisation, all of its parameters trained."""
    model = Linearised.at(start)
    for part in (model.moves.weights, model.moves.biases, model.moves.output):
        part.requires_grad_(True)
    current = replace(model, moves=detached(model.moves))

    def gradients(index: Tensor) -> TwoLayer:
        return current.gradients(*take(inputs, labels, index), PLAIN)

    for step in fit.descend(model.moves, gradients, inputs.shape[1], seeds):
        yield step, lambda x: current(x, PLAIN)
