"""The claims on capacity (C4): how many random and how many trained neurons are a rare feature's own."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, Values, combine, farthest_from

from .arms import Params, part


@part.claim(
    "C4a", "𝓜_j holds a share Pr[Beta(1/2, (d−1)/2) ≥ c₂ log d/d] of random neurons", source="Neuron sets, exact"
)
def ordinary_share(m: Measurements[Params]) -> Judgement:
    sets = [dict(arm="neuron-sets", features=d, ratio=r) for d in (30, 100) for r in (1.0, 0.7)]
    ratios = [m.final("ordinary", **where) / m.final("exact_ordinary", **where) for where in sets]
    return combine(farthest_from(1), ratios, "counted/exact, worst case").between(0.95, 1.05)


@part.claim(
    "C4h",
    "𝓜*_j holds the exact share of random neurons: the integral over the dominant feature's Beta law",
    source="Neuron sets, exact; d = 30 and d = 100, r = 1",
)
def lucky_share(m: Measurements[Params]) -> Judgement:
    sets = [dict(arm="neuron-sets", features=d, ratio=1.0) for d in (30, 100)]
    ratios = [m.final("lucky", **where) / m.final("exact_lucky", **where) for where in sets]
    return combine(farthest_from(1), ratios, "counted/exact, worst d").between(0.95, 1.05)


@part.claim(
    "C4b",
    "under imbalance (d = 100, r = 0.7) lucky neurons are rarer than the printed order by a factor 10 or more",
    source="Neuron sets, counted: that no other feature is in its set has a probability that tends to 0",
    printed="|𝓜*_j| ≥ Ω(m d^{−(1+γ)/r²})",
)
def lucky_bound(m: Measurements[Params]) -> Judgement:
    where = dict(arm="neuron-sets", features=100, ratio=0.7)
    ratio = m.final("lucky", **where) / m.final("printed_lucky", **where)
    return ratio.named("counted share/printed order").at_most(0.1)


@part.claim(
    "C4c",
    "the number of features per random neuron grows no faster than d^{1−r²(1−γ)} from d = 30 to d = 100",
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
    "C4d", "trained: rarer features get fewer neurons of their own", source="Capacity; widest network, mid ε against 1"
)
def fewer_lucky(m: Measurements[Params]) -> Judgement:
    change = _wide(m, "lucky_per_rare", m.params.rare[-1]) - _wide(m, "lucky_per_rare", _middle(m))
    return change.named(f"lucky per rare feature, ε = {m.params.rare[-1]:g} − ε = {_middle(m):g}").above(0)


@part.claim("C4e", "trained: neurons mix more features when some are rare", source="Capacity: |𝓝_i| grows as r falls")
def more_mixing(m: Measurements[Params]) -> Judgement:
    change = _wide(m, "features_per_neuron", _middle(m)) - _wide(m, "features_per_neuron", m.params.rare[-1])
    return change.named(f"features per neuron, ε = {_middle(m):g} − ε = {m.params.rare[-1]:g}").above(0)


@part.claim(
    "C4f", "trained: width raises the share of features that have a neuron of their own", source="Capacity, ε = 1"
)
def width_helps(m: Measurements[Params]) -> Judgement:
    change = _wide(m, "covered", 1.0) - _wide(m, "covered", 1.0, place=0)
    return change.named("covered, widest − narrowest").above(0)


@part.claim(
    "C4g",
    "trained: at equal width fewer features have a neuron of their own the rarer they are",
    source="Capacity: more width is needed",
)
def width_needed(m: Measurements[Params]) -> Judgement:
    change = _wide(m, "covered", m.params.rare[-1]) - _wide(m, "covered", _middle(m))
    return change.named("covered, ε = 1 − mid ε").above(0)


def _wide(m: Measurements[Params], metric: str, epsilon: float, place: int = -1) -> Values:
    """The metric in the widest network, or in that at another place among the widths."""
    return m.final(metric, arm="widths", neurons=m.params.widths[place], epsilon=epsilon)


def _middle(m: Measurements[Params]) -> float:
    return float(m.params.rare[len(m.params.rare) // 2])
