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


def times_fallen_back(leads: Sequence[float]) -> float:
    """How often a lead over time is 0 or less after it was once above; no number (NaN) where it never was."""
    first = next((at for at, lead in enumerate(leads) if lead > 0), None)
    return math.nan if first is None else float(sum(lead <= 0 for lead in leads[first:]))
