"""Claims about the order of learning: heavy axes first, and a small oracle before the large one."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, pool

from .arms import Params, part
from .theory import times_fallen_back


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
