"""What the mathematics predicts about the loop's error, with the source's names.

G = XᵀX with extreme eigenvalues μ and L, κ = L/μ, steps η (T,) or (T, ...).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

Vector = np.ndarray[Any, Any]


def exact_trajectory(G: Tensor, theta: Tensor, eta: Tensor) -> Tensor:
    """θ⁽ᵗ⁾ − θ* = −Π(I − ηG)θ* from θ⁽⁰⁾ = 0, one factor per eigen-direction: (T+1, ..., d)."""
    values, vectors = torch.linalg.eigh(G)
    start = (vectors.mT @ theta.unsqueeze(-1)).squeeze(-1)
    factors = torch.cat([torch.ones_like(values)[None], (1 - eta.unsqueeze(-1) * values).cumprod(0)])
    apart: Tensor = -(vectors @ (factors * start).unsqueeze(-1)).squeeze(-1)
    return apart


def exact_error(G: Tensor, theta: Tensor, eta: Tensor, alpha: float) -> Tensor:
    """⟨TF, θ*⟩ − α = −α θ*ᵀΠ(I − ηG)θ* after 0..T loops from zero: (T+1, ...)."""
    return alpha * (exact_trajectory(G, theta, eta) * theta).sum(-1)


def slope(kappa: float) -> float:
    """The asymptotic slope of log ‖θ⁽ᵗ⁾ − θ*‖² at η = 1/L: 2 ln(1 − 1/κ)."""
    return 2 * math.log1p(-1 / kappa)


def fitted_slope(t: Vector, error: Vector, floor: float) -> float:
    """The slope of log error over the later half of the loops at which it is above the floor."""
    t, error = t[error > floor], error[error > floor]
    later = slice(len(t) // 2, None)
    return float(np.polyfit(t[later], np.log(error[later]), 1)[0])


def competing_examples(T: int, d: int) -> float:
    """The fewest examples under which Theorem 8.17 says anything: n ≥ 64T²d⁴2^{4T}."""
    return 64 * T**2 * d**4 * 2.0 ** (4 * T)
