"""FOMAML on weights and inputs, and the network as a module: what the engine on inner products is held against."""

from __future__ import annotations

from torch import Tensor, nn

from .. import theory
from ..learners import Cell, split_weights
from ..problem import Tasks


def train_direct(tasks: Tasks, start: Tensor, cell: Cell, steps: int) -> Tensor:
    """The same algorithm on weights and inputs: (split, γ, η, J, h) for all seeds; returns W⁽ᵀ⁾ (seeds, filters, dim).
    Slow and obvious; the engine on inner products is tested against it."""
    split, inner_rate, outer_rate, inner_steps, knee = cell
    inner, outer = (w.to(start) for w in split_weights(split, tasks.labels.shape[-1], tasks.support))
    weights = start
    for _ in range(steps):
        adapted = weights.unsqueeze(1).expand(-1, tasks.labels.shape[1], -1, -1)
        for _ in range(inner_steps):
            adapted = adapted - inner_rate * theory.gradient(adapted, tasks.inputs, tasks.labels, inner, knee)
        slopes = theory.gradient(adapted, tasks.inputs, tasks.labels, outer, knee)
        weights = weights - outer_rate * slopes.mean(1)
    return weights


class TwoLayerCNN(nn.Module):
    """The network as a module, for methods that take any: (n, 2, dim) -> (n,)."""

    def __init__(self, weights: Tensor, knee: float) -> None:
        super().__init__()
        self.filters = nn.Parameter(weights.clone())
        self.knee = knee

    def forward(self, inputs: Tensor) -> Tensor:
        return theory.outputs(self.filters, inputs, self.knee)
