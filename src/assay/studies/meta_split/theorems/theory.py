"""Theorems 4.4 and 4.5 and their proofs: conditions, scales, stages and bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..theory import Scales, activation, loss, signs


def feature_only_loss(aligned: Tensor, h: Tensor | float) -> Tensor:
    """Test loss when only the shared feature speaks: ½Σ_y ℓ(yΣ_r j_r σ(y⟨w_r, ν⟩)); aligned (..., 2m)."""
    j = signs(aligned.shape[-1] // 2, aligned)
    sides = [loss(y * (j * activation(y * aligned, h)).sum(-1)) for y in (1, -1)]
    return (sides[0] + sides[1]) / 2


# Stages and bounds along a run


def noise_threshold(m: int, inner_rate: float, energy: float, n: int, J: int) -> float:
    """m^{−1/2}(1 + γs/n)^{−J}: a training noise vector this well aligned counts as memorised (T⁽¹⁾)."""
    return float(m**-0.5 * (1 + inner_rate * energy / n) ** -J)


def feature_threshold(m: int, inner_rate: float, J: int) -> float:
    """m^{−1/2}(1 + γ)^{−J}: the end of the first stage with a split (T⁽²⁾)."""
    return float(m**-0.5 * (1 + inner_rate) ** -J)


def unlearned_level(dim: int) -> float:
    """d^{−1/4}, below which the shared feature stays without a split."""
    return float(dim**-0.25)


def residual_condition(inner_rate: float, K: int, n: int, energy: float, J: int, dim: int) -> float:
    """γK/(n s^J log d): far below 1 where the gradient left after memorising cannot teach the feature."""
    return inner_rate * K / (n * energy**J * math.log(dim))


def pooled_fails(energy: float, K: int, n: int, knee: float = 0.5, class_share: float = 0.5) -> bool:
    """Gradient descent on pooled data meets the noise first when s/(Kn) > π (with h = ½: s > Kn/2)."""
    return energy / (2 * knee * K * n) > class_share / (2 * knee)


def race_steps(x0: float, A: float, D: float) -> float:
    """Steps, with a fraction, in which x₀(1 + A)^t reaches D; negative where it is beyond."""
    if min(x0, A, D) <= 0:
        raise ValueError("the race needs positive starts, rates and goal")
    return math.log(D / x0) / math.log1p(A)


def race_bound(x0: float, A: float, B: float, D: float, y0: float) -> float:
    """Lemma D.5: the largest y when x, growing by 1 + A a step at least, first reaches D, if y grows by 1 + B at
    most."""
    if min(B, y0) <= 0:
        raise ValueError("the race needs positive starts, rates and goal")
    return float(y0 * (1 + B) ** max(0, math.ceil(race_steps(x0, A, D))))


def proof_scales(d: int) -> Scales:
    """Appendix D.1, rounded to whole tasks and filters: purely asymptotic (at d = 10⁶ it has 4 tasks, 2 filters)."""
    log = math.log(d)
    return Scales(d, d // 2, round(log**0.5), max(1, round(log**0.2)), d**-0.5, d**-0.5 * log**-0.4, d**-0.5 * log**0.5)


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


@dataclass(frozen=True)
class DictionaryCheck:
    """Condition 4.1 at this size: norms over σ_s√d must lie in [½, 3/2], cross products be O(σ_s²√d log d)."""

    smallest_norm: float
    largest_norm: float
    largest_product: float
    product_scale: float

    @property
    def holds(self) -> bool:
        return self.smallest_norm >= 0.5 and self.largest_norm <= 1.5 and self.largest_product <= self.product_scale


def check_dictionary(own: Tensor, deviation: float) -> DictionaryCheck:
    """``own`` (dictionary, dim) with coordinate deviation σ_s; the cross products are taken in absolute value."""
    dim = own.shape[-1]
    norms = own.norm(dim=-1) / (deviation * dim**0.5)
    gram = own @ own.mT
    cross = (gram - torch.diag(torch.diag(gram))).abs().amax()
    log = float(torch.log(torch.tensor(float(dim))))
    return DictionaryCheck(float(norms.min()), float(norms.max()), float(cross), deviation**2 * dim**0.5 * log)
