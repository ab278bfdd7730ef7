"""What all the mathematics is about: activation, loss, closed-form gradient, alignment, and scales by their symbols."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

RELU_KNEE = 1e-150  # a float64 Huberized ReLU with this knee is ReLU to the last bit at every size that occurs


def activation(z: Tensor, h: Tensor | float) -> Tensor:
    """σ(z): 0 below 0, z²/(2h) up to h, z − h/2 above. Values alone: with a tiny knee autograd would divide 0 by 0."""
    positive = z.clamp(min=0)
    bent = torch.minimum(positive, torch.as_tensor(h, dtype=z.dtype, device=z.device))
    return positive - bent + bent * (bent / (2 * h))


def slope(z: Tensor, h: Tensor | float) -> Tensor:
    """σ′(z) = clip(z/h, 0, 1)."""
    return (z / h).clamp(0, 1)


def loss(margin: Tensor) -> Tensor:
    """ℓ(x) = log(1 + e^{−x})."""
    return torch.nn.functional.softplus(-margin)


def loss_slope(margin: Tensor) -> Tensor:
    """ℓ′(x) = −1/(1 + e^x), in a form that keeps its relative accuracy for large margins."""
    return -torch.sigmoid(-margin)


def signs(m: int, like: Tensor) -> Tensor:
    """j of the 2m filters: the first m belong to class +1."""
    return torch.cat([torch.ones(m), -torch.ones(m)]).to(like)


def outputs(W: Tensor, x: Tensor, h: float) -> Tensor:
    """f(W, x) = Σ_r j_r Σ_p σ(⟨w_r, x⁽ᵖ⁾⟩): W (..., 2m, d), x (..., n, 2, d) -> (..., n)."""
    z = x.flatten(-3, -2) @ W.mT
    summed = activation(z, h) @ signs(W.shape[-2] // 2, W)
    return torch.unflatten(summed, -1, x.shape[-3:-1]).sum(-1)


def gradient(W: Tensor, x: Tensor, y: Tensor, weights: Tensor, h: float) -> Tensor:
    """Closed form of ∂_W Σ_i weights_i ℓ(y_i f(W, x_i)): the same shape as W (..., 2m, d)."""
    patches = x.flatten(-3, -2)
    pull = weights * loss_slope(y * outputs(W, x, h)) * y
    felt = slope(patches @ W.mT, h) * signs(W.shape[-2] // 2, W)
    return (pull.repeat_interleave(2, -1).unsqueeze(-1) * felt).mT @ patches


def feature_alignment(shared: Tensor) -> Tensor:
    """Λ_j = max_r j⟨w_{j,r}, ν⟩ for j = +1, −1: (..., 2m) -> (..., 2)."""
    plus, minus = shared.chunk(2, -1)
    return torch.stack([plus.amax(-1), (-minus).amax(-1)], -1)


@dataclass(frozen=True)
class Scales:
    """A configuration by its symbols; s is E‖ξ‖²."""

    d: int
    M: int
    K: int
    m: int
    sigma_0: float
    sigma_s: float
    sigma_xi: float

    @property
    def s(self) -> float:
        return self.sigma_xi**2 * (self.d - self.M - 1)
