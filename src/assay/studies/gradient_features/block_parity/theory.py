"""Closed forms for block parities: the oracle network, its size, the label mean, and what simple rules reach."""

from __future__ import annotations

import math
from math import comb

import torch
from torch import Tensor


def oracle_knots(size: int) -> tuple[Tensor, Tensor]:
    """Thresholds and outputs (size + 3 each) of the merged oracle of one block: piecewise linear in z = ⟨D, x⟩ with
    value ∏φ at every count of the block, and 0 at z = 0 when the size is odd."""
    k = size
    knots, outputs = bump_knots(size)
    merged: dict[int, float] = {}
    for knot, output in zip(knots.tolist(), outputs.tolist(), strict=True):
        place = round(knot * math.sqrt(k))
        merged[place] = merged.get(place, 0.0) + output
    kept = {place: value for place, value in sorted(merged.items()) if abs(value) > 1e-9}
    return torch.tensor(list(kept), dtype=torch.float64) / math.sqrt(k), torch.tensor(
        list(kept.values()), dtype=torch.float64
    )


def bump_knots(size: int) -> tuple[Tensor, Tensor]:
    """The same network as it is printed, 3(k + 1) neurons: a bump for every number i of coordinates at +1."""
    k = size
    sign = 1.0 if k % 2 else -1.0
    knots, outputs = [], []
    for i in range(k + 1):
        for offset, height in ((-1, 1.0), (0, -2.0), (1, 1.0)):
            knots.append((2 * i - k + offset) / math.sqrt(k))
            outputs.append(sign * (-1.0) ** (i + 1) * math.sqrt(k) * height)
    return torch.tensor(knots, dtype=torch.float64), torch.tensor(outputs, dtype=torch.float64)


def oracle(projections: Tensor, size: int, knots: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Σ_j over blocks of the oracle at z_j: projections (…, blocks) -> (…)."""
    thresholds, outputs = (part.to(projections) for part in (knots or oracle_knots(size)))
    values: Tensor = (projections.unsqueeze(-1) - thresholds).clamp(min=0) @ outputs
    return values.sum(-1)


def oracle_norm(size: int, blocks: int) -> float:
    """‖a‖ of the merged oracle: √(r(4k(k + 1) + 2k))."""
    return math.sqrt(blocks * (4 * size * (size + 1) + 2 * size))


def majority_accuracy(size: int) -> float:
    """How often the majority of k uniform signs is their parity: what the linear rule sign⟨D, x⟩ reaches."""
    agreeing = sum(comb(size, i) for i in range(size + 1) if ((size - i) % 2 == 0) == (2 * i > size))
    return math.ldexp(agreeing, -size)


def single_block_accuracy(blocks: int) -> float:
    """How often one of r independent fair signs is the sign of their sum."""
    half = (blocks - 1) // 2
    return 0.5 + math.ldexp(comb(blocks - 1, half), -blocks)


def fixed_feature_bound(features: int, norm: float, size: int) -> float:
    """Hinge loss of every head of norm ≤ B on N features in [−1, 1], for some block: 1/2 − √N·B/(2^k·√2). Vacuous
    below 0."""
    return 0.5 - math.ldexp(math.sqrt(features) * norm / math.sqrt(2), -size)
