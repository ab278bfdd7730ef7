"""What the mathematics says that several parts build on: the activation, and the scales of the first steps.

Names follow the source: d, D, k, m, γ (gamma), σ̃ (scale), σ_φ, p_o, a, b, w, s = σ_ξ.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SQRT2 = math.sqrt(2)


def normal_cdf(z: Tensor) -> Tensor:
    return 0.5 * torch.erfc(-z / _SQRT2)


def truncated_relu(z: Tensor) -> Tensor:
    """σ(z) = min(1, max(z, 0))."""
    return z.clamp(0, 1)


def smoothed(z: Tensor, s: float) -> Tensor:
    """E σ(z + ξ) for ξ ~ N(0, s²), in closed form: F(z) − F(z − 1) with F(u) = uΦ(u/s) + sφ(u/s)."""
    if s < 0:
        raise ValueError(f"a smoothing of {s} is not possible")
    if s == 0:
        return truncated_relu(z)

    def integral(u: Tensor) -> Tensor:
        return u * normal_cdf(u / s) + s / math.sqrt(2 * math.pi) * torch.exp(-((u / s) ** 2) / 2)

    return integral(z) - integral(z - 1)


def smoothed_slope(z: Tensor, s: float) -> Tensor:
    """The derivative of ``smoothed``: Φ(z/s) − Φ((z−1)/s); the gate 1{0 < z < 1} when s = 0."""
    if s < 0:
        raise ValueError(f"a smoothing of {s} is not possible")
    if s == 0:
        return ((z > 0) & (z < 1)).to(z.dtype)
    # One erf pair; the difference of erfs equals the difference of CDFs.
    return 0.5 * (torch.erf(z / (s * _SQRT2)) - torch.erf((z - 1) / (s * _SQRT2)))


def initial_scales(k: int, gamma: float, scale: float) -> tuple[float, float, float]:
    """σ_w = 1/k, σ_b = 1/k², σ_a = σ̃²/(γk²)."""
    if gamma <= 0:
        raise ValueError(f"γ = {gamma:g} gives no scale for the second layer; pass the structured problem's γ")
    return 1 / k, 1 / k**2, scale**2 / (gamma * k**2)


def first_step_size(k: int, m: int, gamma: float, scale: float, p_min: float = 1.0) -> float:
    """η⁽¹⁾ = γ²σ̃/(km³), as in the lemma (the full theorem prints σ̃²); times p_min in the general family."""
    if gamma <= 0:
        raise ValueError(f"γ = {gamma:g} gives no first step size; pass the structured problem's γ")
    return p_min * gamma**2 * scale / (k * m**3)
