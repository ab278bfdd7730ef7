"""What the mathematics predicts of training on coarse labels: its first phase and the logarithmic law after it."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

Count = TypeVar("Count", float, Tensor)
Array = np.ndarray[Any, Any]


def output_decomposition(
    s_com: Count, s_sub: Count, common: Tensor, subclass: Tensor, S_com: Tensor, S_sub: Tensor
) -> Tensor:
    """F_+(X) ≈ s*(A_com|S_+(v_+)| + A_c|S_+(v_{+,c})|) (Lemma E.2): an easy sample's output from one detector of each
    kind. With A the response ⟨w, v⟩ + b, |S| the neurons that fire and the numbers of patches that there are in place
    of s*, it is exact up to unequal detectors."""
    return s_com * common * S_com + s_sub * subclass * S_sub


def coarse_phase_time(eta: float, k: int, s: float, P: int, d: int, common: Count, subclass: Count) -> Count:
    """T0: steps until an output reaches 1/d, from the first-step growth of |S_com| and |S_sub| detectors."""
    return 4 * P / (d * eta * s**2 * (common + subclass / k))


def log_law_constant(eta: float, k: int, s: float, P: int, rho: float, common: Count, subclass: Count) -> Count:
    """C in F(t+1) − F(t) = C e^{−F(t)}, corrected: ηs*²/(2P)·(|S_com| + |S_sub|/k)·(1 − ρ). The source's constant lacks
    the numbers of patches and of neurons that make an output out of one neuron's growth."""
    return eta * s**2 / (2 * P) * (common + subclass / k) * (1 - rho)


def printed_log_law_constant(eta: float, k: int, s: float, P: int) -> float:
    """Lemma E.4 as printed: ηs*/(2kP)."""
    return eta * s / (2 * k * P)


def log_law(t: Array, C: float, F0: float, t0: float = 0.0) -> Array:
    """F(t) = log(C(t − t0) + e^{F0})."""
    return np.log(C * (t - t0) + math.exp(F0))


def fitted_constant(t: Array, F: Array) -> float:
    """The slope of e^F against t: C, when the logarithmic law holds."""
    return float(np.polyfit(t, np.exp(F), 1)[0])


def harmonic_remainder(n: int) -> float:
    """ε_n in Σ_{j<n} 1/j = log n + γ − 1/(2n) − ε_n, which lies in [0, 1/(8n²)] (Lemma E.10)."""
    partial = math.fsum(1 / j for j in range(1, n))
    return math.log(n) + 0.57721566490153286 - 1 / (2 * n) - partial
