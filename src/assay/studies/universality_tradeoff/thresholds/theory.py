"""When is a feature worth encoding? Thresholds of capacity in the smallest example, and a layout no probe reads."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..problem import FiniteModel
from ..theory import LOSSES


def rare_pair(share: float) -> FiniteModel:
    """States (0, 0), (1, 0) and (1, 1) of two features, the last two with probability q each: z₂ varies only where
    z₁ = 1, and two draws differ in z₂ alone with probability 2q²."""
    if not 0 < share < 0.5:
        raise ValueError(f"the share q of a rare state must lie in (0, 1/2), not {share}")
    return FiniteModel((1 - 2 * share, share, share))


def exact_threshold(share: float) -> float:
    """B₂(q): with the logistic loss and three dimensions, z₂ is encoded if and only if the norm is larger. Turning the
    two rare states apart by a small angle pays where ℓ'(2B²)/ℓ'(0) < 2q/(1 − 2q); the two sides are equal at
    B = √(½ ln((1 − 3q)/q)). From q = 1/4 on it always pays."""
    rare_pair(share)
    return 0.0 if share >= 0.25 else math.sqrt(math.log((1 - 3 * share) / share) / 2)


def collapsed(norm: float) -> Tensor:
    """The best table (3, 1, 4) that ignores z₂: opposite vectors for the two values of z₁."""
    table = torch.zeros(3, 1, 4, dtype=torch.float64)
    table[0, 0, 0], table[1:, 0, 0] = norm, -norm
    return table


def with_own_coordinates(norm: float) -> Tensor:
    """The source's improvement of it: [√(1 − a²)·f, a·B·1_z] with a² = 1/(2B²), of the same norm."""
    if norm**2 < 0.5:
        raise ValueError("the construction needs a norm of at least 1/√2, or a² = 1/(2B²) exceeds 1")
    table = math.sqrt(1 - 1 / (2 * norm**2)) * collapsed(norm)
    table[range(3), 0, range(1, 4)] = math.sqrt(0.5)
    return table


def construction_gain(share: float, norm: float) -> float:
    """How much the construction lowers the logistic loss."""
    model, loss = rare_pair(share), LOSSES["logistic"]
    return float(model.loss(collapsed(norm), loss) - model.loss(with_own_coordinates(norm), loss))


def construction_threshold(share: float) -> float:
    """The norm from which on the construction lowers the loss, by bisection; a bound on B₂ from above."""
    low, high = math.sqrt(0.5), 4.0
    if construction_gain(share, low) > 0:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if construction_gain(share, middle) > 0 else (middle, high)
    return high


# z_R = (−1, −1), (−1, 1), (1, −1), (1, 1), all even; the label is the first sign.
XOR_LABELS = torch.tensor([-1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
XOR = torch.tensor([[-1.0, 0], [1, 0], [0, -1], [0, 1]], dtype=torch.float64)
SEPARABLE = torch.tensor([[-1.0, 0], [0, -1], [0, 1], [1, 0]], dtype=torch.float64)
FOUR_STATES = FiniteModel((0.25,) * 4)
XOR_LOSS = (math.log(2) + math.log1p(math.exp(-2)) + 2 * math.log1p(math.exp(-1))) / 4


def best_linear_accuracy(points: Tensor, labels: Tensor, *, bias: bool) -> float:
    """Of any linear classifier of points in the plane, over all directions in steps of a thousandth of a turn; with a
    bias over all cuts between neighbours."""
    angles = (torch.arange(1000, dtype=points.dtype) + 0.5) * (2 * math.pi / 1000)
    scores = points @ torch.stack([angles.cos(), angles.sin()])  # (n, directions)
    if not bias:
        return float(((scores * labels.unsqueeze(1)) > 0).double().mean(0).max())
    ordered = scores.sort(0).values
    cuts = torch.cat([ordered[:1] - 1, (ordered[1:] + ordered[:-1]) / 2])  # (cuts, directions)
    right = ((scores.unsqueeze(1) - cuts) * labels[:, None, None] > 0).double().mean(0)
    return float(right.max())
