"""Claims about the order of learning: heavy axes first, and a small oracle before the large one."""

from __future__ import annotations

import polars as pl

from assay.lab import Judgement, Measurements, Values, pool, rise

from .arms import PAIRS, Params, part
from .theory import ordered_share, times_fallen_back


@part.claim(
    "C7a",
    "On XOR axes of weights 0.4, 0.4, 0.1, 0.1 the heavy axes are learned first: the log time until 5 % error is "
    "smaller.",
    source="Simplicity bias: small families of features are fitted before larger ones",
    headline=True,
)
def heavy_earlier(m: Measurements[Params]) -> Judgement:
    where = {"arm": "order", "weights": "unequal"}
    gap = m.final("light_time", **where) - m.final("heavy_time", **where)
    return gap.named("log time, light − heavy axes").above(0)


@part.claim(
    "C7b",
    "On XOR axes of weights 0.4, 0.4, 0.1, 0.1 both heavy axes are learned before either light one in over half of all "
    "networks.",
    source="Simplicity bias",
)
def heavy_first(m: Measurements[Params]) -> Judgement:
    return m.final("heavy_first", arm="order", weights="unequal").above(0.5)


@part.claim(
    "C7c",
    "On XOR axes of unequal weight the network after 2 steps correlates more with the oracle of the two heavy axes "
    "than with the full one.",
    source="Simplicity bias, by the distance of functions",
)
def small_oracle_first(m: Measurements[Params]) -> Judgement:
    lead = m.at("larger_oracle_lead", 2, arm="order", weights="unequal")
    return lead.named("correlation at step 2, full − heavy oracle").below(0)


@part.claim(
    "C7d",
    "On XOR axes of unequal weight the trained network correlates more with the oracle of all four axes than with that "
    "of the heavy two.",
    source="Simplicity bias, by the distance of functions",
    when={"400 steps or more": lambda p: p.order_steps >= 400},
)
def large_oracle_last(m: Measurements[Params]) -> Judgement:
    lead = m.final("larger_oracle_lead", arm="order", weights="unequal")
    return lead.named("correlation at the end, full − heavy oracle").above(0)


@part.claim(
    "X10",
    "On XOR axes of unequal weight, with outputs clipped at the margin, the trained network correlates more with the "
    "full oracle than the heavy one.",
    source="derived: beyond the margin 1 the hinge loss sees no difference, and heavy axes lie far beyond it",
    when={"400 steps or more": lambda p: p.order_steps >= 400},
)
def large_oracle_clipped(m: Measurements[Params]) -> Judgement:
    lead = m.final("clipped_lead", arm="order", weights="unequal")
    return lead.named("correlation of clipped outputs at the end, full − heavy oracle").above(0)


@part.claim(
    "C7e",
    "On XOR axes of unequal weight every network comes nearer to the full oracle than to that of the two heavy axes, "
    "and then stays nearer.",
    source="Simplicity bias: the number of fitted features does not fall",
    when={"400 steps or more": lambda p: p.order_steps >= 400},
)
def no_falling_back(m: Measurements[Params]) -> Judgement:
    curve = m.curve("larger_oracle_lead", arm="order", weights="unequal")
    times = m.per_seed(curve, lambda rows: times_fallen_back(rows["value"].to_list()), "times fallen back")
    return pool([times], "times fallen back (none where never ahead)").at_most(0)


@part.claim(
    "N8",
    "On XOR axes of equal weight the two pairs' log times until 5 % error differ by less than half as much as with "
    "unequal weights.",
    source="control: equal weights",
)
def equal_weights(m: Measurements[Params]) -> Judgement:
    gaps = {
        name: m.final("light_time", arm="order", weights=name) - m.final("heavy_time", arm="order", weights=name)
        for name in ("equal", "unequal")
    }
    excess = gaps["equal"].map(abs) - 0.5 * gaps["unequal"]
    return excess.named("|difference|, equal − half of unequal weights").below(0)


@part.claim(
    "N9",
    "On XOR axes of equal weight the network after 2 steps correlates more with the oracle of all axes than with that "
    "of the first two.",
    source="control: nothing singles out two of four equal axes",
)
def equal_oracles(m: Measurements[Params]) -> Judgement:
    lead = m.at("larger_oracle_lead", 2, arm="order", weights="equal")
    return lead.named("correlation at step 2, full − half oracle").above(0)


LONG = {"400 steps or more": lambda p: p.order_steps >= 400}


def _order(m: Measurements[Params], weights: str) -> Values:
    """Kendall's τ of the axes' learning times with their pair, heaviest first."""

    def ordered(rows: pl.DataFrame) -> float:
        axes = rows.sort("axis")
        return ordered_share(axes["value"].to_list(), [(axis - 1) // 2 for axis in axes["axis"].cast(pl.Int64)])

    rows = m.rows("learning_time", arm="pairs", weights=weights)
    found = m.per_seed(rows, ordered, "Kendall's τ of learning times with weights", by="axis")
    return found.as_correlation()


@part.claim(
    "C7f",
    "On four pairs of XOR axes whose weights halve from pair to pair, axes are learned (to 5 % error) in the order of "
    "their weights: Kendall's τ over axes of different weight is at least 0.8.",
    source="Simplicity bias; the criterion of the design",
    when=LONG,
)
def learned_by_weight(m: Measurements[Params]) -> Judgement:
    return _order(m, "halving").at_least(0.8)


@part.claim(
    "C7g",
    "On four pairs of XOR axes whose weights halve from pair to pair, the number of heaviest pairs whose oracle the "
    "network correlates with most rises over training: its Spearman correlation with time is at least 0.8.",
    source="Simplicity bias, by the distance of functions; the criterion of the design",
    when=LONG,
)
def nearest_oracle_grows(m: Measurements[Params]) -> Judgement:
    return _rise(m, "whole").at_least(0.8)


@part.claim(
    "X28",
    "On four pairs of XOR axes whose weights halve from pair to pair, with outputs clipped at the margin the number of "
    "heaviest pairs whose oracle the network correlates with most rises over training: its Spearman correlation with "
    "time is at least 0.8.",
    source="derived: beyond the margin 1 the hinge loss sees no difference, and heavy axes lie far beyond it (X10)",
    when=LONG,
)
def nearest_clipped_oracle_grows(m: Measurements[Params]) -> Judgement:
    return _rise(m, "clipped").at_least(0.8)


def _rise(m: Measurements[Params], outputs: str) -> Values:
    curve = m.curve("nearest", arm="pairs", weights="halving", outputs=outputs)
    found = m.per_seed(curve, lambda rows: rise(rows["value"].to_list()), "Spearman correlation with time")
    return found.as_correlation()


@part.claim(
    "C7h",
    "On four pairs of XOR axes whose weights halve from pair to pair, every network is nearest to the oracle of one or "
    "two pairs after one step with both layers.",
    source="Simplicity bias; the design asks for at most half of the family at first",
)
def starts_small(m: Measurements[Params]) -> Judgement:
    first = m.at("nearest", 1, arm="pairs", weights="halving", outputs="whole")
    return pool([first], "pairs of the nearest oracle at step 1").at_most(PAIRS // 2)


@part.claim(
    "N23",
    "On four pairs of XOR axes of equal weight, Kendall's τ of learning times with the pairs' numbers stays below 0.4, "
    "half of what unequal weights have to reach.",
    source="control: equal weights, whose numbers mean nothing",
    when=LONG,
)
def no_order_without_weights(m: Measurements[Params]) -> Judgement:
    return _order(m, "equal").below(0.4)
