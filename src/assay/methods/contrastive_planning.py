"""Before contrastive training on imbalanced features: which features can be learned, how fast, and with what width?

The formulas are those of a one-layer encoder with small initial weights under InfoNCE (unnormalised inner products).
There a feature j grows geometrically at a rate set by its positive-pair correlation κ_j: how strongly the two views of
a sample agree along it. Weight decay pulls everything back at the same rate, so a rare feature may never grow at all.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay._extras import extra
from assay._reports import Report, chart

from ._checks import all_finite, check_fields, limits, number, whole

SUPPORTS = 4096  # kinds of supports that the loss floor sums over one by one


@dataclass(frozen=True)
class Descent:
    """What the growth formulas need to know of the training: η, λ, τ and the number |𝔅| of candidates per anchor."""

    rate: float = field(metadata=limits(above=0))
    decay: float = field(metadata=limits(least=0))
    temperature: float = field(metadata=limits(above=0))
    candidates: int = field(metadata=limits(least=2))  # the positive and at least one negative

    def __post_init__(self) -> None:
        check_fields(self)
        number("rate × decay", self.rate * self.decay, least=0, below=1)

    @property
    def pull(self) -> float:
        """(1 − 1/|𝔅|)/τ, what one unit of correlation adds to the growth rate."""
        return (1 - 1 / self.candidates) / self.temperature


def growth_factors(correlation: Tensor, descent: Descent) -> Tensor:
    """G_j = 1 − ηλ + (η/τ)(1 − 1/|𝔅|)κ_j: the factor by which ⟨w, M_j⟩ grows per step near initialisation.

    A direction in which the two views are independent has κ = 0 and shrinks by 1 − ηλ.
    """
    return 1 - descent.rate * descent.decay + descent.rate * descent.pull * correlation


def learnable(correlation: Tensor, descent: Descent) -> Tensor:
    """Whether a feature escapes: (1/τ)(1 − 1/|𝔅|)κ_j > λ."""
    return correlation * descent.pull > descent.decay


def learnability_threshold(descent: Descent) -> float:
    """The smallest positive-pair correlation κ that can be learned under this weight decay: λτ/(1 − 1/|𝔅|)."""
    return descent.decay / descent.pull


def stage_one_steps(feature_energy: Tensor, noise_energy: Tensor, growth: Tensor, shrink: float) -> Tensor:
    """Predicted T1: the first step at which features hold half of a neuron's squared norm, per neuron.

    ``feature_energy`` (..., features) holds ⟨w, M_j⟩² at the start, ``noise_energy`` (...) the squared norm outside the
    features, ``growth`` (features) the factors of ``growth_factors`` and ``shrink`` = 1 − ηλ. Infinite where no feature
    gains on the noise, NaN where an energy is not finite.
    """
    relative = (growth / shrink).double().square()
    energy, noise = feature_energy.double(), noise_energy.double()
    best = torch.where(energy > 0, relative, 0).amax(-1)
    low, high = torch.zeros_like(noise), torch.ones_like(noise)
    known = noise.isfinite() & energy.isfinite().all(-1)
    possible = known & ((best > 1) | (energy.sum(-1) >= noise))

    def reached(steps: Tensor) -> Tensor:
        # In logarithms, so that no power overflows; a feature without energy stays without.
        logs = torch.where(energy > 0, energy.log() + steps.unsqueeze(-1) * relative.log(), -math.inf)
        return logs.logsumexp(-1) >= noise.log()

    while bool((possible & ~reached(high)).any()):
        high = torch.where(possible & ~reached(high), high * 2, high)
    for _ in range(64):
        middle = (low + high) / 2
        low, high = torch.where(reached(middle), low, middle), torch.where(reached(middle), middle, high)
    whole = torch.where(energy.sum(-1) >= noise, 0, high.round(decimals=6).ceil())
    return torch.where(known, torch.where(possible, whole, math.inf), math.nan)


@dataclass(frozen=True)
class NeuronSets:
    """How many neurons of a random layer start out specialised, exactly and by the order statements.

    ``ordinary`` is Pr(neuron ∈ 𝓜_j), ``dominant`` Pr(⟨w, M_j⟩² ≥ c₁ log d/d · E), ``lucky`` Pr(neuron ∈ 𝓜*_j): that
    feature dominates and no other is in its set. ``independent`` = dominant·(1 − ordinary)^{d−1} treats the features as
    independent; under imbalance it is off by factors, mostly too small, since a dominant feature leaves less energy to
    the others. ``printed_*`` are the orders d^{−...} that a bound without constants gives. For a ratio below 1 the
    printed lucky order is far too large: it takes the probability that no other feature is in its set for 1, and that
    probability tends to 0.
    """

    features: int
    dominant: float
    ordinary: float
    lucky: float
    independent: float
    printed_lucky: float
    printed_ordinary: float

    @property
    def features_per_neuron(self) -> float:
        """E|𝓝_i| = d · Pr(i ∈ 𝓜_j)."""
        return self.features * self.ordinary


def set_thresholds(features: int, ratio: float, margin: float) -> tuple[float, float]:
    """(c₁ log d/d, c₂ log d/d) with c₁ = 2(1 + γ)/r² and c₂ = 2(1 − γ)r²: shares of a neuron's feature energy."""
    whole("features", features, 3)
    number("ratio", ratio, above=0, most=1)
    number("margin", margin, above=0, below=1)
    scale = math.log(features) / features
    return 2 * (1 + margin) / ratio**2 * scale, 2 * (1 - margin) * ratio**2 * scale


def neuron_sets(features: int, ratio: float = 1.0, *, margin: float = 0.1) -> NeuronSets:
    """Exact probabilities: ⟨w, M_j⟩²/‖Mᵀw‖² of a Gaussian neuron follows Beta(1/2, (d − 1)/2), and given that share the
    others divide what is left like a Gaussian neuron with d − 1 features."""
    with extra("lab", "the count of lucky neurons"):
        from scipy.stats import beta

    upper, lower = set_thresholds(features, ratio, margin)
    law = beta(0.5, (features - 1) / 2)
    dominant, ordinary = float(law.sf(upper)), float(law.sf(lower))
    return NeuronSets(
        features,
        dominant,
        ordinary,
        min(dominant, _lucky(features, upper, lower)),
        dominant * (1 - ordinary) ** (features - 1),
        features ** -((1 + margin) / ratio**2),
        features ** -((1 - margin) * ratio**2),
    )


@cache
def _lucky(features: int, upper: float, lower: float) -> float:
    """Pr(one share ≥ ``upper``, all others ≤ ``lower``): the integral over the dominant share x of its Beta density
    times Pr(the largest of the other d − 1 shares of the remaining energy ≤ ``lower``/(1 − x))."""
    from scipy.special import betaln

    if upper >= 1:
        return 0.0
    # With x = 1 − (1 − upper)e^{−2y/(d − 1)} the density falls like e^{−y}.
    node, weight = np.polynomial.legendre.leggauss(160)
    y, half = 60 * (node + 1), (features - 1) / 2
    left = (1 - upper) * np.exp(-y / half)
    density = np.exp(half * np.log(left) - 0.5 * np.log1p(-left) - betaln(0.5, half)) / half
    return float(60 * weight @ (density * _largest_share_below(lower / left, features - 1)))


def _largest_share_below(levels: np.ndarray, parts: int) -> np.ndarray:
    """Pr(max_k g_k²/Σg² ≤ t) for n Gaussians. From t = 1/2 on at most one share is larger, and the tails add up."""
    from scipy.stats import beta

    found = np.where(levels >= 1, 1.0, 0.0)
    one = (levels >= 0.5) & (levels < 1)
    found[one] = 1 - parts * beta(0.5, (parts - 1) / 2).sf(levels[one])
    several = (levels > 1 / parts) & (levels < 0.5)
    if several.any():
        found[several] = _inverted(levels[several], parts)
    return np.clip(found, 0, 1)


def _inverted(levels: np.ndarray, parts: int, points: int = 2048) -> np.ndarray:
    """The same by an inverse Laplace transform: of variables with density x^{−1/2} on [0, 1] the sum's density at 1/t,
    over that of variables without the bound 1. Z(z) = ∫₀¹ x^{−1/2}e^{−zx}dx = √(π/z) erf √z is the transform of one.

    The contour passes through the saddle point, so that small probabilities keep their digits. The sum lies in [0, n],
    so the trapezoid rule with spacing 2π/(n + 1) has no aliasing error; what is cut off falls like u^{−n/2}.
    """
    from scipy.special import erf, gammaln, hyp1f1

    def transform(z: np.ndarray) -> np.ndarray:
        return np.asarray(2 * hyp1f1(0.5, 1.5, -z))

    total = 1 / levels
    low, high = np.full_like(levels, -500.0), np.full_like(levels, 1e4)
    for _ in range(60):
        middle = (low + high) / 2
        middle = np.where(np.abs(middle) < 1e-6, 1e-6, middle)
        mean = (1 - 2 * np.exp(-middle) / transform(middle)) / (2 * middle)
        low, high = np.where(mean > total / parts, middle, low), np.where(mean > total / parts, high, middle)
    saddle = np.where(np.abs(low) < 1e-3, 1e-3, low)
    spacing = 2 * math.pi / (parts + 1)
    u = spacing * np.arange(points)
    z = saddle[:, None] - 1j * u
    ratio = np.sqrt(np.pi / z) * erf(np.sqrt(z)) / transform(saddle)[:, None]
    terms = (ratio**parts * np.exp(-1j * u * total[:, None])).real
    density = spacing / math.pi * (terms.sum(1) - terms[:, 0] / 2)
    log = parts * np.log(transform(saddle) / math.sqrt(math.pi)) + saddle * total + gammaln(parts / 2)
    return np.asarray(density * np.exp(log - (parts / 2 - 1) * np.log(total)))


def required_width(features: int, ratio: float = 1.0, *, margin: float = 0.1, exact: bool = True) -> float:
    """Neurons needed for one lucky neuron per feature, in expectation: 1/Pr(lucky), or the printed order
    d^{(1 + γ)/r²}. Infinite where the set is empty."""
    sets = neuron_sets(features, ratio, margin=margin)
    probability = sets.lucky if exact else sets.printed_lucky
    return 1 / probability if probability > 0 else math.inf


def loss_floor(rates: Sequence[float], negatives: int) -> float:
    """The InfoNCE loss that pure neurons of any scale, compared by inner products, cannot go below: E log(1 + N), for
    constant magnitudes and no noise. Other encoders can: one that also tells apart which features are absent does.

    Given the features S active in an anchor, N ~ Bin(negatives, Π_{j∈S} q_j/2) counts the negatives whose active
    features contain S with the same signs. ``rates`` are the q_j. An anchor without features costs log(1 + negatives).
    The sum over supports is exact where features share few rates; where there are too many kinds of supports, it is
    interpolated, with an error below 1e-10.
    """
    q = np.asarray(rates, dtype=float)
    if q.ndim != 1 or not len(q) or not ((q >= 0) & (q <= 1)).all():
        raise ValueError("rates are the activation probabilities of the features, each in [0, 1]")
    whole("negatives", negatives, 1)
    values, counts = np.unique(q, return_counts=True)
    kinds, active = math.prod(int(count) + 1 for count in counts), q[q > 0]
    rarest = float((np.log(active) - math.log(2)).sum())  # log Pr(a negative contains all features): may underflow
    if kinds > SUPPORTS or rarest < -650:
        return _smooth_floor(active, negatives)
    return _floor(values, counts, negatives)


def _floor(values: np.ndarray, counts: np.ndarray, negatives: int) -> float:
    """Features of equal rate are interchangeable: sum over how many of each are active, not over all supports."""
    with extra("lab", "the loss floor"):
        from scipy.stats import binom

    grids = np.meshgrid(*(np.arange(count + 1) for count in counts), indexing="ij")
    active = np.stack([grid.ravel() for grid in grids], 1)
    weight = np.prod([binom.pmf(active[:, k], counts[k], values[k]) for k in range(len(values))], axis=0)
    match = np.prod((values / 2) ** active, axis=1)
    hits = np.arange(negatives + 1)
    log_hits = np.log1p(hits)
    each = np.array([float(binom.pmf(hits, negatives, p) @ log_hits) for p in match])
    return float(weight @ each)


def _smooth_floor(rates: np.ndarray, negatives: int) -> float:
    """The same for any number of distinct rates, in time linear in it.

    With G(ℓ) = E log(1 + Bin(n, e^{−ℓ})) an active feature adds a = log(2/q) to ℓ, an absent one nothing. So features
    are averaged out one by one, V ← (1 − q)V(ℓ) + qV(ℓ + a), and the floor is V(0). V is kept on a grid and read off
    between by Lagrange's formula in 8 points; it is as smooth as G, whose derivatives are of order k!, so a spacing of
    1/64 leaves about 1e-13 per feature. Beyond the grid's end G < n e^{−ℓ} is below 1e-17.
    """
    with extra("lab", "the loss floor"):
        from scipy.stats import binom

    step, points = 1 / 64, np.arange(8)
    match = np.exp(-step * np.arange(math.ceil((math.log(negatives) + 40) / step)))
    values = np.zeros(len(match))
    for place, p in enumerate(match):
        mean, reach = negatives * p, 10 * math.sqrt(negatives * p) + 50  # what lies beyond has probability 1e-20
        hits = np.arange(max(0, int(mean - reach)), min(negatives, int(mean + reach)) + 1)
        values[place] = binom.pmf(hits, negatives, p) @ np.log1p(hits)
    others = [np.delete(points, k) for k in points]
    for q in rates:
        ahead, rest = divmod((math.log(2) - math.log(q)) / step, 1)  # 44 spacings at least: 3 points lie before
        weights = [np.prod((3 + rest - other) / (k - other)) for k, other in zip(points, others, strict=True)]
        beyond = np.append(values[int(ahead) - 3 :], np.zeros(len(values) + 7))[: len(values) + 7]
        values = (1 - q) * values + q * np.convolve(beyond, weights[::-1], mode="valid")
    return float(values[0])


def pruning_horizon(ratio: float, boost: float) -> float:
    """Steps until a rare coefficient, ``ratio`` times as large as the frequent ones, has caught up when pruning lets it
    grow faster by the factor 1 + ``boost`` per step: log(1/r)/log(1 + boost)."""
    number("ratio", ratio, above=0, most=1)
    number("boost", boost, above=0)
    return math.log(1 / ratio) / math.log1p(boost)


@dataclass(frozen=True, repr=False)
class Plan(Report):
    """What the formulas say before training: per feature the growth factor and whether it can be learned at all, the
    steps until features hold half of a typical neuron, and the neurons that start out specialised.

    Neuron sets and ``required_width`` (infinite when no feature is learnable) take the ratio of the smallest to the
    largest correlation among learnable features; ``width_per_feature`` is that width, infinite for the others."""

    growth: Tensor
    learnable: Tensor
    stage_one: float
    sets: NeuronSets
    lucky_per_feature: float
    required_width: float
    width_per_feature: Tensor

    def headline(self) -> str:
        can, every = int(self.learnable.sum()), len(self.learnable)
        return (
            f"{can} of {every} features can be learned; features hold half of a neuron after {self.stage_one:g} steps; "
            f"one lucky neuron per feature takes a width of {self.required_width:.4g}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per feature."""
        rows = zip(self.growth.tolist(), self.learnable.tolist(), self.width_per_feature.tolist(), strict=True)
        return [
            {"feature": j, "growth": growth, "learnable": can, "width": width if math.isfinite(width) else None}
            for j, (growth, can, width) in enumerate(rows)
        ]

    def figure(self) -> Any:
        """Growth per step of every feature; at 1 and below none is learned."""
        drawn = (
            chart(self.table())
            .mark_point(filled=True)
            .encode(
                x="feature:O",
                y={"field": "growth", "type": "quantitative", "scale": {"zero": False}},
                color="learnable:N",
            )
        )
        return drawn + chart([{"growth": 1.0}]).mark_rule(strokeDash=[4, 4]).encode(y="growth:Q")


def plan(correlation: Tensor, descent: Descent, *, dim: int, width: int, margin: float = 0.1) -> Plan:
    """Plan a training with features of positive-pair correlation κ (features,) in ``dim`` dimensions.

    κ_j is E[(Σ_r z_j)(Σ_s z_j⁺)] for the model problem; for your own data, estimate the covariance of the two views'
    summed inputs along a direction; an estimate may be zero or slightly negative, which cannot be learned. Warns when
    a feature cannot be learned under this weight decay, and when no neuron can start out specialised.
    """
    features = len(correlation)
    if dim < features:
        raise ValueError(f"{features} features do not fit into {dim} dimensions")
    all_finite("the correlations κ", correlation)
    growth, can = growth_factors(correlation, descent), learnable(correlation, descent)
    learned = correlation[can]
    ratio = float(learned.min() / learned.max()) if len(learned) else 1.0
    sets = neuron_sets(features, ratio, margin=margin)
    if not bool(can.all()):
        lost = int((~can).sum())
        warnings.warn(
            f"{lost} of {features} features grow no faster than weight decay shrinks them: no width teaches "
            "them, and neuron sets are planned for the others",
            stacklevel=2,
        )
    if set_thresholds(features, ratio, margin)[0] > 1:
        warnings.warn(f"c₁ log d > d at d = {features}, r = {ratio:.3g}: no neuron starts out lucky", stacklevel=2)
    typical = torch.ones(features), torch.tensor(float(dim - features))
    steps = stage_one_steps(*typical, growth, 1 - descent.rate * descent.decay)
    needed = required_width(features, ratio, margin=margin) if len(learned) else math.inf
    each = torch.where(can, needed, math.inf)
    return Plan(growth, can, float(steps), sets, width * sets.lucky, needed, each)
