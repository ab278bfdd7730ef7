"""How many neurons of a random layer start out specialised on one feature: exactly, and by the order statements."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from assay._extras import extra

from ._checks import number, whole


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


def required_width(features: int, ratio: float = 1.0, *, margin: float = 0.1, exact: bool = True) -> float:
    """Neurons needed for one lucky neuron per feature, in expectation: 1/Pr(lucky), or the printed order
    d^{(1 + γ)/r²}. Infinite where the set is empty."""
    sets = neuron_sets(features, ratio, margin=margin)
    probability = sets.lucky if exact else sets.printed_lucky
    return 1 / probability if probability > 0 else math.inf


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
