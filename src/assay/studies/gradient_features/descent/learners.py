"""Full-batch descent of a head on frozen features, one seed at a time, and the best head to compare it with. And what
neurons keep of their own features while both layers move."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import softplus

from assay.training.two_layer import TwoLayer

from ..theory import cosines

CURVATURE = {"logistic": 0.25, "squared": 2.0}


def loss(outputs: Tensor, labels: Tensor, kind: str) -> Tensor:
    if kind == "squared":
        return (outputs - labels).square().mean(-1)
    return softplus(-labels * outputs).mean(-1)


def slope(outputs: Tensor, labels: Tensor, kind: str) -> Tensor:
    """∂ loss/∂ outputs, times the number of samples."""
    if kind == "squared":
        return 2 * (outputs - labels)
    return -labels * torch.sigmoid(-labels * outputs)


def descend_head(features: Tensor, labels: Tensor, kind: str, rate: float, steps: int) -> Iterator[tuple[int, Tensor]]:
    """Heads (features,) from 0 on, after every step."""
    head = features.new_zeros(features.shape[1])
    for step in range(1, steps + 1):
        head = head - rate * features.T @ slope(features @ head, labels, kind) / len(labels)
        yield step, head


def best_head(features: Tensor, labels: Tensor, kind: str, penalty: float) -> Tensor:
    """The minimiser of loss + penalty/2·‖a‖² by Newton's method: a finite a*, on separable data too."""
    head = features.new_zeros(features.shape[1])
    size = len(labels)
    for _ in range(60):
        outputs = features @ head
        logistic = torch.sigmoid(outputs) * torch.sigmoid(-outputs)
        bend = torch.full_like(outputs, 2.0) if kind == "squared" else logistic
        gradient = features.T @ slope(outputs, labels, kind) / size + penalty * head
        hessian = features.T @ (bend.unsqueeze(1) * features) / size
        hessian.diagonal().add_(penalty)
        move = torch.linalg.solve(hessian, gradient)
        head = head - move
        if float(move.norm()) <= 1e-10 * (1 + float(head.norm())):
            break
    return head


class OwnFeatures:
    """Which feature each neuron of a network is nearest to, and which of them lie in a cone around it, both as the
    network is now. ``cosine`` and ``kept`` look at these neurons after they have moved."""

    def __init__(self, net: TwoLayer, features: Tensor, width: float) -> None:
        self.features = features
        near = cosines(net.weights, features).abs()
        self.own = near.argmax(-1, keepdim=True)  # (seeds, neurons, 1)
        self.caught = near.amax(-1) > 1 - width  # (seeds, neurons)
        self.width = width

    def cosine(self, net: TwoLayer) -> Tensor:
        """The median over a seed's caught neurons of the cosine with their own feature: (seeds,). NaN without any, and
        where the weights of one are not finite."""
        near = self._near(net)
        lost = (near.isnan() & self.caught).any(1)
        return torch.where(lost, torch.nan, near.nanmedian(1).values)

    def kept(self, net: TwoLayer) -> Tensor:
        """The share of a seed's caught neurons that are still in the cone of their own feature: (seeds,)."""
        return (self._near(net) > 1 - self.width).double().sum(1) / self.caught.double().sum(1)

    def _near(self, net: TwoLayer) -> Tensor:
        """|cosine| with the own feature, NaN for neurons that were not caught: (seeds, neurons)."""
        found = cosines(net.weights, self.features).abs().gather(-1, self.own).squeeze(-1)
        return torch.where(self.caught, found, torch.nan)
