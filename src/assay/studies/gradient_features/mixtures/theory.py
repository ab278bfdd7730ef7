"""The oracle's hinge loss on an XOR mixture without any sampling: tails that no sample would ever meet. And exact first
gradients where components have noise of different sizes."""

from __future__ import annotations

import math

from torch import Tensor

from ..theory import density, mean_excess, mixture_gradient, upper_tail
from .problem import UnequalSpread


def spread_gradient(problem: UnequalSpread, weights: Tensor, thresholds: Tensor) -> Tensor:
    """G(w, b) in expectation where each component has a deviation σ_j of its own: (…, neurons, dim)."""
    spread = problem.deviations / problem.mixture.deviation
    return mixture_gradient(problem.mixture, weights, thresholds, spread.to(weights))


def xor_oracle_loss(tails: float) -> float:
    """The mean hinge loss of Σ_j y_j/t·max(0, ⟨D_j, x⟩ − 2t), t = tails·σ, on an XOR mixture with means of norm 4t.

    An input of the component j has ⟨D_j, x⟩ = 4t + σN. Its own bump gives the margin 2 + N/s (at least 0), the bump of
    the antipode helps it where N < −6s, and the other axis takes v = max(0, |N'| − 2s)/s off. The mean over N has a
    closed form for every v; the mean over N' is a quadrature."""
    from scipy.integrate import quad

    if tails <= 0:
        raise ValueError(f"the knots lie a positive number of deviations away, not {tails:g}")
    s = tails

    def given(v: float) -> float:
        capped = mean_excess(s * (1 - v)) - mean_excess(2 * s)
        return (capped - mean_excess(6 * s) + mean_excess((7 + v) * s)) / s

    far, _ = quad(lambda z: given(z / s - 2) * density(z), 2 * s, 2 * s + 20, epsabs=0, epsrel=1e-9)
    return given(0.0) * (1 - 2 * upper_tail(2 * s)) + 2 * float(far)


def stated_oracle_loss(dim: float, tau: float) -> float:
    """The bound as it is printed, with s = √(τ·log d): 3d^(−τ) + 4/(d^(0.9τ − 1)·s). A Gaussian tail beyond s is of the
    order d^(−τ/2), and this takes it for d^(−τ)."""
    return 3 * math.pow(dim, -tau) + 4 / (math.pow(dim, 0.9 * tau - 1) * math.sqrt(tau * math.log(dim)))
