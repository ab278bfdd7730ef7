"""Full-batch descent of a head on frozen features, one seed at a time, and the best head to compare it with."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import softplus

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
