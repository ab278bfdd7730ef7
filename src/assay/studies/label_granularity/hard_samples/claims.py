"""Which hard samples coarse labels lose: a rule for single ones (C2c, C2h), k* (C2d, C2i, N1), strong noise (C2e)."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

AROUND = {"a sweep with k on both sides of k*": lambda p: bool(p.around_critical)}
_RULE = "Lemma E.8 as a rule for single samples"


@part.claim(
    "C2c",
    "Which hard samples a network trained on superclass labels gets wrong follows, for at least 95 % of them, from its "
    "neurons' responses to features.",
    source=f"{_RULE}; the two k of the sweep next to k*, where some are wrong and some are not",
    printed="the distractors' term of the lower bound lacks their strength α†",
    when=AROUND,
)
def rule(m: Measurements[Params]) -> Judgement:
    return _around(m, "rule_agreement").named("share of samples where the rule is right, k next to k*").at_least(0.95)


@part.claim(
    "C2h",
    "A rule from responses to features tells which hard samples superclass labels lose, better than always or never "
    "does.",
    source=f"{_RULE}; k next to k*, where both outcomes occur; the better of always and never is chosen per k and seed",
    when=AROUND,
)
def rule_against_constant(m: Measurements[Params]) -> Judgement:
    gain = _around(m, "rule_agreement") - _around(m, "constant_agreement")
    return gain.named("agreement, rule − better constant").above(0)


def _around(m: Measurements[Params], metric: str) -> Values:
    """The mean over the two numbers of subclasses next to k*."""
    below, above = (m.final(metric, arm="sweep", k=k) for k in m.params.around_critical)
    return (below + above) * 0.5


def crossing(m: Measurements[Params], metric: str = "hard_error") -> Values:
    """The k at which each seed's error on hard samples crosses one half, interpolated in log k; NaN if it does not."""
    return m.per_seed(
        m.rows(metric, arm="sweep"), _crossing, f"k where the {metric.replace('_', ' ')} crosses ½", by="k"
    )


def _crossing(curve: pl.DataFrame) -> float:
    k, error = curve["k"].to_numpy(), curve["value"].to_numpy()
    above = np.flatnonzero(error >= 0.5)
    if len(above) == 0 or above[0] == 0:
        return math.nan
    i = above[0]
    share = (0.5 - error[i - 1]) / (error[i] - error[i - 1])
    return float(np.exp(np.log(k[i - 1]) + share * np.log(k[i] / k[i - 1])))


@part.claim(
    "C2d",
    "The number of subclasses at which superclass labels lose half of the hard samples follows from neurons counted "
    "before training.",
    source="Derived from Lemmas E.2, E.4, E.5 and E.8: the rule for single samples, its responses from the numbers of "
    "neurons that fire at the start",
    when=AROUND,
    headline=True,
)
def crosses_where_foretold(m: Measurements[Params]) -> Judgement:
    ratio = (crossing(m) / crossing(m, "foretold_error")).named("crossing/foretold from the start")
    because = "the share of neurons that noise can wake on either side, Q(τ − slack)/Q(τ) − 1"
    return ratio.equals(1, within=m.params.waking_share(), because=because)


@part.claim(
    "C2i",
    "Superclass labels lose half of the hard samples at k* = s*(1 − ρ)/(s†(ᾱ† − ρ)) subclasses, on average over "
    "initialisations and within a factor e^(1/√λ) for λ detectors per feature.",
    source="Derived from Lemma E.8: R_com/R_sub = k against s*/(s†ᾱ†), with the bias that falls by ρ",
    when={**AROUND, "distractors stronger than ρ": lambda p: math.isfinite(p.tied_critical)},
)
def crosses_at_critical(m: Measurements[Params]) -> Judgement:
    critical = m.params.tied_critical
    far = crossing(m).map(lambda k: math.log(k / critical), "log(crossing/k*)")
    because = "1/√λ, by which the numbers λ of detectors of different features vary (C4b)"
    return far.equals(0, within=m.params.expected_detectors() ** -0.5, because=because)


@part.claim(
    "C2e",
    "One patch of strong noise in hard samples without distractors misleads a network trained on superclass labels "
    "more than one on subclass labels.",
    source="Derived from the ζ* terms of Lemma E.8 and Theorem G.3: s*/k < σ_ζ* < s*/√(2 log 2k); 0.05 is the "
    "error that C3 allows",
    when={"some σ_ζ* between its two scales": lambda p: p.separating_noise is not None},
)
def strong_noise(m: Measurements[Params]) -> Judgement:
    sigma = m.params.separating_noise
    coarse, fine = (m.final("hard_error", arm="strong-noise", labels=who, strong=sigma) for who in ("coarse", "fine"))
    return (coarse - fine).named("hard error, coarse − fine").at_least(0.05)


@part.claim(
    "N1",
    "With at most half as many subclasses as k*, the number at which faint distractors outweigh a subclass feature, a "
    "network trained on superclass labels gets at least 95 % of hard samples right.",
    source="control; the smallest k of the sweep",
    when={"a sweep that starts below k*/2": lambda p: 2 * p.sweep[0] <= p.sweep_critical},
    headline=True,
)
def below_critical(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="sweep", k=m.params.sweep[0]).at_most(0.05)
