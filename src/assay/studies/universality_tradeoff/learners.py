"""Training of tables on a sphere and of linear representations within norm bounds, all seeds at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from assay.training import Seeds

from .problem import LinearTasks, Loss
from .theory import LOSSES


def train_tables(
    start: Tensor, objective: Callable[[Tensor], Tensor], *, radius: Tensor | float, steps: int, rate: float
) -> Tensor:
    """Tables (..., states, dim) with rows of norm ``radius``, by Adam on directions with a rate that falls to zero.
    ``objective`` gives one number for each of the leading axes, so that these never meet."""
    free = normalize(start, dim=-1).clone().requires_grad_()
    rule = torch.optim.Adam([free], lr=rate)
    for step in range(steps):
        rule.param_groups[0]["lr"] = rate * (1 - step / steps)
        loss = objective(radius * normalize(free, dim=-1)).sum()
        rule.zero_grad()
        torch.autograd.backward(loss)
        rule.step()
    return (radius * normalize(free, dim=-1)).detach()


def into_norm_class(weights: Tensor, budget: float) -> Tensor:
    """The nearest matrices with spectral norm at most 1 and squared Frobenius norm at most ``budget``: singular values
    become min(1, σ/(1 + λ)), λ by bisection where the budget binds."""
    left, sizes, right = torch.linalg.svd(weights, full_matrices=False)
    low = torch.zeros_like(sizes[..., :1])
    high = torch.full_like(low, 1.0)
    for _ in range(60):  # until the budget is kept at the upper end
        outside = (sizes / (1 + high)).clamp(max=1).square().sum(-1, keepdim=True) > budget
        if not bool(outside.any()):
            break
        high = torch.where(outside, 2 * high, high)
    inside = sizes.clamp(max=1).square().sum(-1, keepdim=True) <= budget
    for _ in range(60):
        middle = (low + high) / 2
        outside = (sizes / (1 + middle)).clamp(max=1).square().sum(-1, keepdim=True) > budget
        low, high = torch.where(outside, middle, low), torch.where(outside, high, middle)
    kept = torch.where(inside, sizes, sizes / (1 + high)).clamp(max=1)
    found: Tensor = (left * kept.unsqueeze(-2)) @ right
    return found


def near(weights: Tensor, centre: Tensor, radius: float) -> Tensor:
    """Matrices with spectral norm at most 1 within ``radius`` of ``centre``, which is one of them: clipped, then drawn
    back towards the centre, where the segment stays in both sets."""
    left, sizes, right = torch.linalg.svd(weights, full_matrices=False)
    clipped = (left * sizes.clamp(max=1).unsqueeze(-2)) @ right
    away = clipped - centre
    length = torch.linalg.matrix_norm(away).clamp(min=1e-300)[..., None, None]
    found: Tensor = centre + away * (radius / length).clamp(max=1)
    return found


@dataclass(frozen=True)
class LinearPretraining:
    """Projected gradient descent on the contrastive loss of linear tasks (the mean of a negative is 0) from small
    weights: a large rate for the first half, a quarter of it for the second."""

    steps: int = 1200
    batch: int = 1000
    rate: float = 2.0
    loss: Loss = LOSSES["logistic"]

    def train(self, problem: LinearTasks, seeds: Seeds, *, task: int | None = None, name: str = "mixture") -> Tensor:
        """W (seeds, k, d), trained on the mixture or on one task alone."""
        basis = problem.basis(seeds)
        weights = 0.1 * seeds.normal(f"start, {name}", problem.features, problem.dim)
        return self.descend(
            problem, seeds, weights, basis, lambda w: into_norm_class(w, problem.relevant), task=task, name=name
        )

    def descend(
        self,
        problem: LinearTasks,
        seeds: Seeds,
        weights: Tensor,
        basis: Tensor,
        project: Callable[[Tensor], Tensor],
        *,
        task: int | None,
        name: str,
    ) -> Tensor:
        for step in range(self.steps):
            pairs = problem.pairs(seeds, f"{name}, batch {step}", self.batch, task)
            x, y = (z @ basis.mT for z in pairs)
            weights = weights.detach().requires_grad_()
            margins = ((x @ weights.mT) * (y @ weights.mT)).sum(-1)
            (slope,) = torch.autograd.grad(self.loss(margins).mean(-1).sum(), weights)
            rate = self.rate if step < self.steps / 2 else self.rate / 4
            weights = project(weights.detach() - rate * slope)
        return weights.detach()


def gram(weights: Tensor, basis: Tensor) -> Tensor:
    """G = (WM)ᵀ(WM) (seeds, d, d): what the loss depends on, block by block."""
    turned = weights @ basis
    return turned.mT @ turned
