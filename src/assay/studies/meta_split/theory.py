"""What the mathematics says: activation, closed-form gradient, scales, stages, growth, bounds."""

from __future__ import annotations

import math
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
    return summed.unflatten(-1, x.shape[-3:-1]).sum(-1)


def gradient(W: Tensor, x: Tensor, y: Tensor, weights: Tensor, h: float) -> Tensor:
    """Closed form of ∂_W Σ_i weights_i ℓ(y_i f(W, x_i)): the same shape as W (..., 2m, d)."""
    patches = x.flatten(-3, -2)
    pull = weights * loss_slope(y * outputs(W, x, h)) * y
    felt = slope(patches @ W.mT, h) * signs(W.shape[-2] // 2, W)
    return (pull.repeat_interleave(2, -1).unsqueeze(-1) * felt).mT @ patches


def feature_only_loss(aligned: Tensor, h: Tensor | float) -> Tensor:
    """Test loss when only the shared feature speaks: ½Σ_y ℓ(yΣ_r j_r σ(y⟨w_r, ν⟩)); aligned (..., 2m)."""
    j = signs(aligned.shape[-1] // 2, aligned)
    sides = [loss(y * (j * activation(y * aligned, h)).sum(-1)) for y in (1, -1)]
    return (sides[0] + sides[1]) / 2


def loss_bound(alignment: Tensor, h: Tensor | float) -> Tensor:
    """2exp(−σ(Λ)) of the proof of Theorem 4.5; alignment is the smaller Λ_j."""
    return 2 * torch.exp(-activation(alignment, h))


# Stages and bounds along a run


def noise_threshold(m: int, inner_rate: float, energy: float, n: int, J: int) -> float:
    """m^{−1/2}(1 + γs/n)^{−J}: a training noise vector this well aligned counts as memorised (T⁽¹⁾)."""
    return m**-0.5 * (1 + inner_rate * energy / n) ** -J


def feature_threshold(m: int, inner_rate: float, J: int) -> float:
    """m^{−1/2}(1 + γ)^{−J}: the end of the first stage with a split (T⁽²⁾)."""
    return m**-0.5 * (1 + inner_rate) ** -J


def unlearned_level(dim: int) -> float:
    """d^{−1/4}, below which the shared feature stays without a split."""
    return dim**-0.25


def residual_condition(inner_rate: float, K: int, n: int, energy: float, J: int, dim: int) -> float:
    """γK/(n s^J log d): far below 1 where the gradient left after memorising cannot teach the feature."""
    return inner_rate * K / (n * energy**J * math.log(dim))


def pooled_fails(energy: float, K: int, n: int, knee: float = 0.5, class_share: float = 0.5) -> bool:
    """Gradient descent on pooled data meets the noise first when s/(Kn) > π (with h = ½: s > Kn/2)."""
    return energy / (2 * knee * K * n) > class_share / (2 * knee)


def race_bound(x0: float, A: float, B: float, D: float, y0: float) -> float:
    """The largest y when x, growing by 1 + A a step, first reaches D, if y grows by 1 + B at most (race lemma)."""
    if min(x0, A, B, D, y0) <= 0:
        raise ValueError("the race needs positive starts, rates and goal")
    steps = max(0, math.ceil(math.log(D / x0) / math.log1p(A)))
    return y0 * (1 + B) ** steps


# Scales that the source prints


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


def proof_scales(d: int) -> Scales:
    """Appendix D.1, rounded to whole tasks and filters: purely asymptotic (at d = 10⁶ it has 4 tasks, 2 filters)."""
    log = math.log(d)
    return Scales(d, d // 2, round(log**0.5), max(1, round(log**0.2)), d**-0.5, d**-0.5 * log**-0.4, d**-0.5 * log**0.5)


def printed_scales(d: int = 1000) -> Scales:
    """The synthetic experiment: K = ⌈log d⌉³, m = ⌊log(d)^1.5⌋, σ_ξ = log(d)³/√d, σ_s = 1/(√d log(d)²); M is not
    stated (we take d/2)."""
    log = math.log(d)
    return Scales(d, d // 2, math.ceil(log) ** 3, math.floor(log**1.5), d**-0.5, d**-0.5 * log**-2, d**-0.5 * log**3)


def initial_loss(scales: Scales) -> float:
    """Roughly E ℓ at initialisation when noise sets the logits: std(f)/√(2π)."""
    u = scales.sigma_0 * scales.sigma_xi * math.sqrt(scales.d - scales.M - 1)
    return u * math.sqrt(2 * scales.m * (0.5 - 0.5 / math.pi)) / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class InitialBounds:
    """Preliminary estimates at initialisation, with probability 1 − δ, written with d_eff = d − rank P."""

    energy: tuple[float, float]
    product: float
    feature: float
    noise: float
    largest_feature: float
    largest_noise: float


def initial_bounds(scales: Scales, samples: int, delta: float) -> InitialBounds:
    """``samples`` is Kn. The printed bounds have d for d_eff: with M = d/2 the norm's lower bound is then its mean."""
    free, energy = scales.d - scales.M - 1, scales.s
    return InitialBounds(
        energy=(energy / 2, 1.5 * energy),
        product=2 * scales.sigma_xi**2 * math.sqrt(free * math.log(4 * samples**2 / delta)),
        feature=scales.sigma_0 * math.sqrt(2 * math.log(8 * scales.m / delta)),
        noise=scales.sigma_0 * math.sqrt(energy) * math.sqrt(2 * math.log(8 * scales.m * samples / delta)),
        largest_feature=scales.sigma_0 / 2,
        largest_noise=scales.sigma_0 * math.sqrt(energy) / 4,
    )
