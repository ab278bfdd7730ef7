"""The race of feature and noise step by step, and what the race lemma allows the loser."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Every, Measurements, Values, charts, combine, pool

from ..learners import TT, TV
from ..params import Planted
from ..theorems import theory
from ..theorems.claims import EITHER, WITHIN
from .arms import part

_RUNNERS = {
    TT: {"least_noise_alignment": "noise Ξ", "largest_feature_alignment": "feature Λ"},
    TV: {"largest_noise_alignment": "noise Ξ", "feature_alignment": "feature Λ"},
}


def _goal(p: Planted, split: str) -> float:
    """What the winner has to reach: T⁽¹⁾ without a split, T⁽²⁾ with one."""
    if split == TT:
        return theory.noise_threshold(p.filters, p.inner_rate, p.noise_energy, p.samples, p.inner_steps)
    return theory.feature_threshold(p.filters, p.inner_rate, p.inner_steps)


@part.figure(
    "race",
    caption="The race of the shared feature (alignment Λ) and the noise of the outer samples (alignment Ξ) over the "
    "outer steps of the base setting, before the inner steps (geometric mean over seeds). Drawn is the weakest of "
    "those that should win (without a split the noise, with one the feature) and the strongest of those that should "
    "lose; the goal is the level at which the winner ends its first stage. With a split validation noise should stay "
    "below d^{−1/4} while the feature grows.",
    shows=("C3o", "C3q", "C4p", "C4q"),
)
def race(m: Measurements[Planted]) -> alt.HConcatChart:
    parts = []
    for split, names in _RUNNERS.items():
        rows = m.rows(list(names), arm="stages", split=split).filter(pl.col("value") > 0)
        frame = rows.group_by("metric", "step", maintain_order=True).agg(value=pl.col("value").log().mean().exp())
        frame = frame.with_columns(runner=pl.col("metric").replace_strict(names))
        lines = alt.Chart(frame, width=290, height=240, title=EITHER[split]).mark_line()
        curves = lines.encode(
            x=alt.X("step:Q", title="outer step"),
            y=alt.Y("value:Q", title="alignment", scale=alt.Scale(type="log")),
            color=alt.Color("runner:N", title=None, sort=["noise Ξ", "feature Λ"]),
        )
        levels = {"goal": _goal(m.params, split)}
        if split == TV:
            levels["d^{−1/4}"] = theory.unlearned_level(m.params.dim)
        parts.append(curves + charts.rules(levels, width=290))
    return alt.hconcat(*parts)


@part.table(
    "race",
    caption="What the loser of the race has come to, over what the race lemma allows it (with the rates of the "
    "formulas, a tenth in its favour; of validation noise a factor of 2): the larger Λ when all training noise is "
    "memorised (T⁽¹⁾), and the largest Ξ when the feature ends its first stage (T⁽²⁾), means over seeds with 95 % "
    "intervals. And the largest Ξ with a split at any step before the larger Λ passes log(d)^0.1, over d^{−1/4} (from "
    "the least to the largest seed).",
    shows=("C3q", "C4p", "C4q"),
)
def race_table(m: Measurements[Planted]) -> pl.DataFrame:
    rows: list[tuple[str, str, Values | Every, str]] = [
        ("C4p", "without a split: Λ at T⁽¹⁾/bound", _of_bound(m, TT), "1 at most"),
        ("C4q", "with a split: Ξ at T⁽²⁾/bound", _of_bound(m, TV), "1 at most"),
        ("C3q", "with a split: Ξ while the feature grows/d^{−1/4}", _while_growing(m), "1 at most"),
    ]
    return charts.by_claim(rows)


def _of_bound(m: Measurements[Planted], split: str) -> Values:
    """The loser when the winner reaches its goal, over the bound of the race lemma."""
    p, goal = m.params, _goal(m.params, split)
    winner, loser, energy = {
        TT: ("least_noise_alignment", "largest_feature_alignment", "least_energy"),
        TV: ("feature_alignment", "largest_noise_alignment", "largest_energy"),
    }[split]

    def bound(found: list[float]) -> float:
        ahead, behind, own = found
        rates = p.rates(split, noise_energy=own)
        faster, slower = (rates.noise, rates.feature) if split == TT else (rates.feature, rates.noise)
        slack = 1 + WITHIN if split == TT else 2.0
        steps = ((1 - WITHIN) * p.outer_rate * faster, slack * p.outer_rate * slower)
        return theory.race_bound(ahead, *steps, goal, behind) if min(ahead, behind, *steps) > 0 else math.nan

    starts = [m.at(metric, 0, arm="stages", split=split) for metric in (winner, loser)]
    allowed = combine(bound, [*starts, m.final(energy, arm="stages", split=split)], "bound")
    return _when_reached(m, winner, loser, goal, split) / allowed


def _when_reached(m: Measurements[Planted], winner: str, loser: str, goal: float, split: str) -> Values:
    """The loser at the first step at which the winner has its goal; NaN where it never does."""

    def at_goal(rows: pl.DataFrame) -> float:
        there = rows.filter(pl.col("winner") >= goal)["value"]
        return float(there[0]) if len(there) and rows["winner"].is_finite().all() else math.nan

    return m.per_seed(_joined(m, loser, split, winner=winner), at_goal, "loser at the winner's goal")


def _while_growing(m: Measurements[Planted]) -> Every:
    """The largest alignment with validation noise before the larger Λ passes log(d)^0.1."""
    level = math.log(m.params.dim) ** 0.1

    def largest(rows: pl.DataFrame) -> float:
        growing = rows.filter(pl.col("feature") < level)["value"].to_list()
        return max(growing) if growing and rows["feature"].is_finite().all() else math.nan

    both = _joined(m, "largest_noise_alignment", TV, feature="largest_feature_alignment")
    reached = m.per_seed(both, largest, "largest Ξ") / theory.unlearned_level(m.params.dim)
    return pool([reached], "largest Ξ/d^{−1/4}")


def _joined(m: Measurements[Planted], metric: str, split: str, **others: Any) -> pl.DataFrame:
    """The curve of a metric with those of others beside it, in columns of their own."""
    frame = m.curve(metric, arm="stages", split=split)
    for name, other in others.items():
        beside = m.curve(other, arm="stages", split=split).select("seed", "step", pl.col("value").alias(name))
        frame = frame.join(beside, on=["seed", "step"])
    return frame
