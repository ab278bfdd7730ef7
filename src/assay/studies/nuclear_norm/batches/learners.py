"""The diagonal model trained on samples: one weight per feature, by stochastic gradient descent, all seeds at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from assay.methods.nuclear_norm import nuclear_norm
from assay.training.seeds import Seeds


@dataclass(frozen=True)
class Recipe:
    """Adam, whose rate falls linearly to 0; ``rows`` is the batch for the loss and for the norm, ``strength`` that of
    the nuclear norm over √rows."""

    rows: int
    steps: int = 1000
    rate: float = 0.01
    decay: float = 0.0
    strength: float = 0.0


def train(z: Tensor, seeds: Seeds, recipe: Recipe, watch: Callable[[int], None] = lambda step: None) -> Tensor:
    """Weights (seeds, d) on label times features z (seeds, n, d), from a start where all are equal."""
    count, n, dim = z.shape
    weights = torch.full((count, dim), 0.05, dtype=z.dtype, device=z.device).requires_grad_()
    optimiser = torch.optim.Adam([weights], recipe.rate)
    at = torch.arange(count, device=z.device)[:, None]
    for step, batch in enumerate(seeds.batches("order", n, recipe.rows, recipe.steps)):
        features = z[at, batch] * weights.unsqueeze(1)
        losses = softplus(-features.sum(2)).mean(1) + recipe.decay / 2 * weights.square().sum(1)
        if recipe.strength:
            norms = nuclear_norm(features, "sqrt_rows", solver="gram", stacked=True)
            losses = losses + recipe.strength * norms
        optimiser.param_groups[0]["lr"] = recipe.rate * (1 - step / recipe.steps)
        optimiser.zero_grad()
        torch.autograd.backward(losses.sum())
        optimiser.step()
        watch(step + 1)
    return weights.detach()


def train_limited(z: Tensor, keep: int, *, steps: int, rate: float, decay: float) -> Tensor:
    """Weights (seeds, d) after iterative hard thresholding: full-batch gradient descent from zero that keeps the
    ``keep`` largest after every step. (Adam would make all first steps equally long, and the choice arbitrary.)"""
    weights = torch.zeros(z.shape[0], z.shape[2], dtype=z.dtype, device=z.device)
    for _ in range(steps):
        slopes = -torch.sigmoid(-(z @ weights.unsqueeze(2)))  # (seeds, n, 1), of the logistic loss
        gradient = (slopes.mT @ z).squeeze(1) / z.shape[1] + decay * weights
        weights = keep_largest(weights - rate * gradient, keep)
    return weights


def keep_largest(weights: Tensor, count: int) -> Tensor:
    """All but the ``count`` largest weights of each seed set to zero."""
    kept = weights.abs().topk(count, dim=1).indices
    return weights * torch.zeros_like(weights).scatter_(1, kept, 1.0)
