"""The stages of the proofs, step by step: when the feature's first one ends, and who wins the race to it."""

from __future__ import annotations

import math

import polars as pl

from assay.lab import Judgement, Measurements, Values, combine, pool

from ..learners import TT, TV
from ..params import Planted
from ..theorems import theory
from ..theorems.claims import BASE, RATES, WITHIN
from .arms import part


def _runner(m: Measurements[Planted], metric: str, split: str) -> pl.DataFrame:
    return m.curve(metric, arm="stages", split=split)


def _first_step(m: Measurements[Planted], metric: str, split: str, level: float) -> Values:
    """The first outer step at which the metric has the level; NaN where it never does."""

    def first(rows: pl.DataFrame) -> float:
        there = rows.filter(pl.col("value") >= level)
        return float(there["step"][0]) if len(there) else math.nan

    return m.per_seed(_runner(m, metric, split), first, f"first step with {metric} at {level:.2g}")


def _value_at(m: Measurements[Planted], metric: str, split: str, steps: Values) -> Values:
    """The metric at each seed's own step; NaN where there is no such step."""
    rows = _runner(m, metric, split).select("seed", "step", "value").iter_rows()
    known = {(seed, float(step)): value for seed, step, value in rows}
    return Values({seed: known.get((seed, step), math.nan) for seed, step in steps.by_seed.items()}, metric)


def _start(m: Measurements[Planted], metric: str, split: str) -> Values:
    return m.at(metric, 0, arm="stages", split=split)


@part.claim(
    "C3o",
    "With a split the feature ends its first stage (T⁽²⁾: Λ ≥ m^{−1/2}(1 + γ)^{−J}) after as many steps as its growth "
    "rate predicts, within 10 %.",
    source="Lemma 6.2 with explicit constants: log(D/Λ⁽⁰⁾)/log(1 + ηR_ν)",
    when=RATES,
)
def second_stage(m: Measurements[Planted]) -> Judgement:
    p = m.params
    level = theory.feature_threshold(p.filters, p.inner_rate, p.inner_steps)
    rate = p.outer_rate * p.rates(TV).feature
    predicted = _start(m, "feature_alignment", TV).map(lambda start: theory.race_steps(start, rate, level))
    ratio = _first_step(m, "feature_alignment", TV, level) / predicted
    return ratio.named("measured/predicted T⁽²⁾").equals(
        1, within=WITHIN, because="that of the rate, which the time is inverse to"
    )


@part.claim(
    "C3q",
    "With a split no validation noise is memorised while the feature grows: until Λ passes log(d)^0.1 every alignment "
    "with it stays below d^{−1/4}.",
    source="Claim F.11, t ≤ T⁽³⁾ of the faster class; an order, here with constant 1",
    when=BASE,
)
def validation_noise_small(m: Measurements[Planted]) -> Judgement:
    level = math.log(m.params.dim) ** 0.1
    feature = _runner(m, "largest_feature_alignment", TV).select("seed", "step", feature="value")
    both = _runner(m, "largest_noise_alignment", TV).join(feature, on=["seed", "step"])

    def largest(rows: pl.DataFrame) -> float:
        growing = rows.filter(pl.col("feature") < level)["value"].to_list()
        return max(growing) if rows["feature"].is_finite().all() and growing else math.nan

    reached = m.per_seed(both, largest, "largest Ξ") / theory.unlearned_level(m.params.dim)
    return pool([reached], "largest Ξ/d^{−1/4}").at_most(1)


@part.claim(
    "C4p",
    "Without a split the feature loses the race: when all noise is memorised (T⁽¹⁾) it has grown by no more than the "
    "race lemma allows.",
    source="Lemma D.5 in the proof of Theorem 4.4, with explicit rates: that of the weakest noise, both 10 % in its "
    "disfavour",
    when=RATES,
)
def noise_wins_the_race(m: Measurements[Planted]) -> Judgement:
    p = m.params
    level = theory.noise_threshold(p.filters, p.inner_rate, p.noise_energy, p.samples, p.inner_steps)
    slower = (1 + WITHIN) * p.outer_rate * p.rates(TT).feature

    def bound(found: list[float]) -> float:
        faster = (1 - WITHIN) * p.outer_rate * p.rates(TT, noise_energy=found[2]).noise
        return theory.race_bound(found[0], faster, slower, level, found[1])

    starts = [_start(m, name, TT) for name in ("least_noise_alignment", "largest_feature_alignment")]
    energy = m.final("least_energy", arm="stages", split=TT)
    ended = _value_at(m, "largest_feature_alignment", TT, _first_step(m, "least_noise_alignment", TT, level))
    return (ended / combine(bound, [*starts, energy], "bound")).named("Λ at T⁽¹⁾/bound").at_most(1)


@part.claim(
    "C4q",
    "With a split noise loses the race: when the feature ends its first stage (T⁽²⁾) no validation noise has grown by "
    "more than the race lemma allows.",
    source="Lemma D.5 in the proof of Theorem F.9, with explicit rates: 10 % in disfavour of the feature, a factor of "
    "2 in favour of the strongest noise (C4h)",
    when=RATES,
)
def feature_wins_the_race(m: Measurements[Planted]) -> Judgement:
    p = m.params
    level = theory.feature_threshold(p.filters, p.inner_rate, p.inner_steps)
    faster = (1 - WITHIN) * p.outer_rate * p.rates(TV).feature

    def bound(found: list[float]) -> float:
        slower = 2 * p.outer_rate * p.rates(TV, noise_energy=found[2]).noise
        return theory.race_bound(found[0], faster, slower, level, found[1])

    starts = [_start(m, name, TV) for name in ("feature_alignment", "largest_noise_alignment")]
    energy = m.final("largest_energy", arm="stages", split=TV)
    ended = _value_at(m, "largest_noise_alignment", TV, _first_step(m, "feature_alignment", TV, level))
    return (ended / combine(bound, [*starts, energy], "bound")).named("largest Ξ at T⁽²⁾/bound").at_most(1)
