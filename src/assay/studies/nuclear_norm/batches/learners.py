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
    """Adam, whose rate falls linearly to 0; ``rows`` is the batch for the loss and for the norm. ``strength`` is that
    of the nuclear norm over √rows, ``keep`` the number of features that survive each step."""

    rows: int
    steps: int = 1000
    rate: float = 0.01
    decay: float = 0.0
    strength: float = 0.0
    keep: int | None = None


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
        if recipe.keep is not None:
            keep_largest_(weights, recipe.keep)
        watch(step + 1)
    return weights.detach()


@torch.no_grad()
def keep_largest_(weights: Tensor, count: int) -> None:
    """Set all but the ``count`` largest weights of each seed to zero."""
    kept = weights.abs().topk(count, dim=1).indices
    weights.mul_(torch.zeros_like(weights).scatter_(1, kept, 1.0))
