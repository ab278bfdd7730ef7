"""Which hard samples coarse labels lose: the rule for single samples (C2c, C2h), k* (C2d, N1), strong noise (C2e)."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

AROUND = {"a sweep with k on both sides of k*": lambda p: bool(p.around_critical)}


@part.claim(
    "C2c",
    "which hard samples it gets wrong, where some are and some are not, follows from its responses to distractors and "
    "to the subclass feature",
    source="Lemma E.8 as a rule for single samples; the two k of the sweep next to k*",
    printed="the distractors' term of the lower bound lacks their strength α†",
    when=AROUND,
)
def rule(m: Measurements[Params]) -> Judgement:
    return _around(m, "rule_agreement").named("share of samples where the rule is right, k next to k*").at_least(0.95)


@part.claim(
    "C2h",
    "the rule for single hard samples is right more often than the better of always and never, chosen per k and seed",
    source="Lemma E.8 as a rule for single samples; k next to k*, where both outcomes occur",
    when=AROUND,
)
def rule_against_constant(m: Measurements[Params]) -> Judgement:
    gain = _around(m, "rule_agreement") - _around(m, "constant_agreement")
    return gain.named("agreement, rule − better constant").above(0)


def _around(m: Measurements[Params], metric: str) -> Values:
    """The mean over the two numbers of subclasses next to k*."""
    below, above = (m.final(metric, arm="sweep", k=k) for k in m.params.around_critical)
    return (below + above) * 0.5


def crossing(m: Measurements[Params]) -> Values:
    """The k at which each seed's hard error crosses one half, interpolated in log k; an end of the range if it does
    not."""
    rows = m.rows("hard_error", arm="sweep")
    return m.per_seed(rows, _crossing, "k where the hard error crosses ½", by="k")


def _crossing(curve: pl.DataFrame) -> float:
    k, error = curve["k"].to_numpy(), curve["value"].to_numpy()
    above = np.flatnonzero(error >= 0.5)
    if len(above) == 0:
        return float(k[-1]) * 10
    i = above[0]
    if i == 0:
        return float(k[0]) / 10
    share = (0.5 - error[i - 1]) / (error[i] - error[i - 1])
    return float(np.exp(np.log(k[i - 1]) + share * np.log(k[i] / k[i - 1])))


@part.claim(
    "C2d",
    "over k, the hard error crosses one half within a factor 2.5 of k* = s*/(s†ᾱ†)",
    source="Derived from Lemma E.8: R_com/R_sub = k against s*/(s†ᾱ†)",
    when={"distractors of some strength": lambda p: math.isfinite(p.sweep_critical)},
)
def crosses_near_critical(m: Measurements[Params]) -> Judgement:
    critical = m.final("critical", arm="sweep", k=m.params.sweep[0])
    return (crossing(m) / critical).named("crossing/k*").between(1 / 2.5, 2.5)


@part.claim(
    "C2e",
    "one patch of strong noise misleads the coarse network where it spares the fine one (σ_ζ* = 1, no distractors)",
    source="Derived from the ζ* terms of Lemma E.8 and Theorem G.3: s*/k < σ_ζ* < s*/√(2 log 2k)",
    when={"σ_ζ* = 1 between its two scales": lambda p: 1.0 in p.strong_noises and p.feature_patches < p.subclasses},
)
def strong_noise(m: Measurements[Params]) -> Judgement:
    coarse, fine = (m.final("hard_error", arm="strong-noise", labels=who, strong=1.0) for who in ("coarse", "fine"))
    return (coarse - fine).named("hard error, coarse − fine").at_least(0.05)


@part.claim(
    "N1",
    "below k* coarse labels suffice: no error on hard samples for the smallest k of the sweep",
    source="control",
    when={"a sweep that starts below k*/2": lambda p: 2 * p.sweep[0] <= p.sweep_critical},
)
def below_critical(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="sweep", k=m.params.sweep[0]).at_most(0.05)
