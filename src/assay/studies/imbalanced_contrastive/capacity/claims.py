"""The claims on capacity (C4): how many random and how many trained neurons are a rare feature's own, and the
energy in them (C3p)."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, Values, combine, farthest

from .arms import Params, part

HALF = {"ε = 0.5 and ε = 1 among the frequencies": lambda p: {0.5, 1.0} <= set(p.rare)}
EQUAL = {"ε = 1 among the frequencies": lambda p: 1.0 in p.rare}


@part.claim(
    "C4a",
    "Of random neurons, the share that have much of a feature (the set 𝓜_j) is Pr[Beta(1/2, (d−1)/2) ≥ c₂ log d/d].",
    source="Neuron sets, exact; d = 30 and 100, r = 1 and 0.7",
)
def ordinary_share(m: Measurements[Params]) -> Judgement:
    sets = [dict(arm="neuron-sets", features=d, ratio=r) for d in (30, 100) for r in (1.0, 0.7)]
    ratios = [m.final("ordinary", **where) / m.final("exact_ordinary", **where) for where in sets]
    because = "5 %, six standard errors of a seed's count of 50,000 neurons where the set is smallest"
    return farthest(1, ratios, "counted/exact, worst case").equals(1, within=0.05, because=because)


@part.claim(
    "C4h",
    "Of random neurons, the share that one feature alone dominates (the lucky ones, 𝓜*_j) is what an integral over "
    "Beta laws gives.",
    source="Neuron sets, exact; d = 30 and d = 100, r = 1",
)
def lucky_share(m: Measurements[Params]) -> Judgement:
    sets = [dict(arm="neuron-sets", features=d, ratio=1.0) for d in (30, 100)]
    ratios = [m.final("lucky", **where) / m.final("exact_lucky", **where) for where in sets]
    because = "5 %, a third of the least by which features taken as independent would miss"
    return farthest(1, ratios, "counted/exact, worst d").equals(1, within=0.05, because=because)


@part.claim(
    "C4b",
    "With 100 features, the rare ones 0.7 times as frequent, one feature alone dominates a random neuron at most a "
    "tenth as often as the printed order d^{−(1+γ)/r²} with constant 1.",
    source="Neuron sets, counted: that no other feature is in its set has a probability that tends to 0",
    printed="|𝓜*_j| ≥ Ω(m d^{−(1+γ)/r²})",
    headline=True,
)
def lucky_bound(m: Measurements[Params]) -> Judgement:
    where = dict(arm="neuron-sets", features=100, ratio=0.7)
    ratio = m.final("lucky", **where) / m.final("printed_lucky", **where)
    return ratio.named("counted share/printed order").at_most(0.1)


@part.claim(
    "C4c",
    "From 30 to 100 features (d) the number that a random neuron has much of grows no faster than d^{1−r²(1−γ)}, r = "
    "ε_min/ε_max.",
    source="|𝓝_i| = O(d^{1−r²(1−γ)}); r = 1 and r = 0.7, γ = 0.1",
)
def features_grow(m: Measurements[Params]) -> Judgement:
    excess = [_exponent(m, ratio) - (1 - ratio**2 * 0.9) for ratio in (1.0, 0.7)]
    return combine(max, excess, "measured − stated exponent, worst r").at_most(0)


def _exponent(m: Measurements[Params], ratio: float) -> Values:
    """The power of d with which the number of features per neuron grows between d = 30 and d = 100."""
    counts = [m.final("features_per_neuron", arm="neuron-sets", features=d, ratio=ratio) for d in (30, 100)]
    return (counts[1] / counts[0]).map(lambda value: math.log(value) / math.log(100 / 30) if value > 0 else math.nan)


@part.claim(
    "C4d",
    "Trained where rare features are half as frequent (ε = 0.5), a network has fewer neurons of each rare feature's "
    "own than one trained where all are equally frequent (ε = 1).",
    source="Capacity; widest network",
    when=HALF,
)
def fewer_lucky(m: Measurements[Params]) -> Judgement:
    return _equal_over_half(m, "lucky_per_rare", "lucky per rare feature").above(0)


@part.claim(
    "C4e",
    "Trained where rare features are half as frequent (ε = 0.5), a network mixes more features per neuron than one "
    "trained where all are equally frequent (ε = 1).",
    source="Capacity: |𝓝_i| grows as r falls; widest network",
    when=HALF,
)
def more_mixing(m: Measurements[Params]) -> Judgement:
    return _equal_over_half(m, "features_per_neuron", "features per neuron").below(0)


@part.claim(
    "C4f",
    "With all features equally frequent, more of them have a neuron of their own in the widest network than in the "
    "narrowest.",
    source="Capacity, ε = 1",
    when=EQUAL,
)
def width_helps(m: Measurements[Params]) -> Judgement:
    change = _wide(m, "covered", 1.0) - _wide(m, "covered", 1.0, place=0)
    return change.named("covered, widest − narrowest").above(0)


@part.claim(
    "C4g",
    "Of networks of equal width, one trained where rare features are half as frequent (ε = 0.5) has a neuron for fewer "
    "of them alone than one trained where all are equally frequent (ε = 1).",
    source="Capacity: more width is needed; widest network",
    when=HALF,
)
def width_needed(m: Measurements[Params]) -> Judgement:
    return _equal_over_half(m, "covered", "share of rare features with a neuron").above(0)


@part.claim(
    "C3p",
    "After contrastive training, a rare feature's energy, summed over its own neurons (𝓜_j), is ε² of a frequent "
    "one's, within a factor 4 at every frequency (ε) tried.",
    source="Stage 3: 𝔉_j = Σ_{i∈𝓜_j} α_ij² = Θ((ε_j/ε_max)² τ log³ d); widest network",
)
def set_energy(m: Measurements[Params]) -> Judgement:
    ratios = [_wide(m, "set_energy_ratio", epsilon) * (1 / epsilon**2) for epsilon in m.params.rare]
    logs = [ratio.map(math.log2) for ratio in ratios]
    worst = farthest(0, logs, "log2 of (𝔉 rare/𝔉 frequent)/ε², worst ε")
    return worst.equals(0, within=2, because="a factor 4, the square of C3g's, as energies are squares")


def _wide(m: Measurements[Params], metric: str, epsilon: float, place: int = -1) -> Values:
    """The metric in the widest network, or in that at another place among the widths."""
    return m.final(metric, arm="widths", neurons=m.params.widths[place], epsilon=epsilon)


def _equal_over_half(m: Measurements[Params], metric: str, what: str) -> Values:
    """The metric where all features are equally frequent less that where rare ones are half as frequent."""
    return (_wide(m, metric, 1.0) - _wide(m, metric, 0.5)).named(f"{what}, ε = 1 − ε = 0.5")
