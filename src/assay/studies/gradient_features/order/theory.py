"""Oracles of the first axes of an XOR mixture, and how near a network is to each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..problem import GaussianMixture


def oracle(problem: GaussianMixture, inputs: Tensor, labels: tuple[float, ...]) -> Tensor:
    """g* of the first axes alone, Σ_j y_j·max(0, |⟨D_j, x⟩| − ‖μ‖/2): (seeds, n)."""
    along = inputs[..., : len(labels)].abs() - problem.means[0].norm().to(inputs) / 2
    found: Tensor = along.clamp(min=0) @ torch.tensor(labels).to(inputs)
    return found


def correlation(left: Tensor, right: Tensor) -> Tensor:
    """Correlation over the samples, 0 where one side does not vary: (seeds,)."""
    a, b = (part - part.mean(1, keepdim=True) for part in (left, right))
    found: Tensor = (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1)).clamp(min=1e-12)
    return found


def distance(left: Tensor, right: Tensor) -> Tensor:
    """‖f/‖f‖ − g/‖g‖‖ over the samples, √2 where one side is 0: (seeds,). From 0 (the same up to scale) to 2."""
    cosine = (left * right).sum(1) / (left.norm(dim=1) * right.norm(dim=1)).clamp(min=1e-12)
    found: Tensor = (2 - 2 * cosine).clamp(min=0).sqrt()
    return found


def least_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """min over c ≥ 0 of the mean hinge loss of c·g(x), by a golden section of this convex function: (seeds,). For the
    oracle of some axes, whose heads are equal by symmetry, this is OPT of networks on them."""
    low, high = torch.zeros_like(outputs[:, :1]), torch.full_like(outputs[:, :1], 4.0)
    golden = (math.sqrt(5) - 1) / 2

    def loss(scale: Tensor) -> Tensor:
        return (1 - labels * scale * outputs).clamp(min=0).mean(1, keepdim=True)

    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        lower = loss(left) <= loss(right)
        low, high = torch.where(lower, low, left), torch.where(lower, right, high)
    return loss((low + high) / 2).squeeze(1)


def ordered_share(times: Sequence[float], ranks: Sequence[float]) -> float:
    """Kendall's τ of times with ranks over all pairs of different rank: pairs in order minus pairs out of order, over
    their number; equal times count as neither. NaN where a time is."""
    if any(math.isnan(time) for time in times):
        return math.nan
    signs = [
        (0 if a == b else math.copysign(1, a - b)) * math.copysign(1, r - s)
        for i, (a, r) in enumerate(zip(times, ranks, strict=True))
        for b, s in list(zip(times, ranks, strict=True))[:i]
        if r != s
    ]
    return sum(signs) / len(signs)


def times_fallen_back(leads: Sequence[float]) -> float:
    """How often a lead over time is 0 or less after it was once above; no number (NaN) where it never was."""
    first = next((at for at, lead in enumerate(leads) if lead > 0), None)
    return math.nan if first is None else float(sum(lead <= 0 for lead in leads[first:]))
