"""Stage three of the network: both layers trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds
from assay.training.two_layer import TwoLayer, frozen, hinge_gradients, take

from ..learners import PLAIN, Fit, detached


def train_network(
    net: TwoLayer, inputs: Tensor, labels: Tensor, fit: Fit, seeds: Seeds
) -> Iterator[tuple[int, TwoLayer]]:
    """Stage three on both layers; yields the trained network as it goes (the same object, updated in place)."""
    model = frozen(net, weights=fit.weight_rate > 0)

    def gradients(index: Tensor) -> TwoLayer:
        with torch.no_grad():
            return hinge_gradients(model, *take(inputs, labels, index), PLAIN)

    for step in fit.descend(model, gradients, inputs.shape[1], seeds):
        yield step, detached(model)


@dataclass(frozen=True)
class Plain:
    """A network as a predictor, with the activation that it is trained with."""

    net: TwoLayer

    def __call__(self, inputs: Tensor) -> Tensor:
        return self.net(inputs, PLAIN)
