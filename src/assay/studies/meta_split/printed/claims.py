"""C10: what the printed synthetic configuration shows, and what it does not."""

from __future__ import annotations

import math

import polars as pl

from assay.lab import Every, Judgement, Measurements, Values, pool

from ..learners import TT, TV
from .arms import RATES, Params, part

# The pair of rates at which the split ends with the lower loss: what is said about that gap is judged there.
GAP = "0.001/0.0001"


def _printed(m: Measurements[Params], metric: str, split: str, rates: str = GAP, variant: str = "huberized") -> Values:
    return m.final(metric, arm="printed", split=split, rates=rates, variant=variant)


def _gap(m: Measurements[Params], variant: str = "huberized") -> Values:
    return _printed(m, "test_loss", TT, variant=variant) - _printed(m, "test_loss", TV, variant=variant)


def _both(m: Measurements[Params], metric: str) -> Every:
    """A metric at the end of training with a split, at both printed pairs of rates."""
    return pool([_printed(m, metric, TV, rates) for rates in RATES], metric.replace("_", " "))


def _last_over_least(m: Measurements[Params], split: str, rates: str) -> Values:
    """The last test loss over the least along the run, per seed."""

    def over_least(rows: pl.DataFrame) -> float:
        values = rows["value"].to_list()
        return float(values[-1] / min(values))

    return m.per_seed(_curve(m, split, rates), over_least, "last/least test loss")


def _ends_over_least(m: Measurements[Params], split: str, rates: str) -> Values:
    """The smaller of the first and the last test loss over the least along the run, per seed."""

    def over_least(rows: pl.DataFrame) -> float:
        values = rows["value"].to_list()
        return float(min(values[0], values[-1]) / min(values))

    return m.per_seed(_curve(m, split, rates), over_least, "smaller end/least test loss")


def _curve(m: Measurements[Params], split: str, rates: str) -> pl.DataFrame:
    return m.curve("test_loss", arm="printed", split=split, rates=rates, variant="huberized")


@part.claims_over(
    {"C10a": {"rates": "0.01/0.001"}, "C10b": {"rates": "0.001/0.0001"}},
    statement="in the printed configuration the split ends with the lower test loss (rates {rates})",
    source="Table 1, synthetic; the order only: T, M, n₁ and the test are not printed, rates are printed twice",
    paper="8.50 without, 4.66 with a split",
)
def lower_loss(m: Measurements[Params], *, rates: str) -> Judgement:
    losses = [_printed(m, "test_loss", split, rates) for split in (TT, TV)]
    return (losses[0] - losses[1]).named("loss without − with a split").above(0)


@part.claim(
    "C10c",
    "but at neither pair is anything learned with a split: accuracy stays below 0.6",
    source="Section 5.1, synthetic",
    printed="the lower loss shows that the split learns the feature",
)
def nothing_learned(m: Measurements[Params]) -> Judgement:
    return _both(m, "test_accuracy").at_most(0.6)


@part.claim("C10d", "and the loss stays above log 2, that of a constant answer", source="Section 5.1, synthetic")
def above_a_constant(m: Measurements[Params]) -> Judgement:
    return _both(m, "test_loss").at_least(math.log(2))


@part.claim("C10e", "noise alignment is more than ten times the feature's at the end", source="Section 5.1, synthetic")
def noise_over_feature(m: Measurements[Params]) -> Judgement:
    return _both(m, "largest_feature_over_noise").named("Λ/Ξ").at_most(0.1)


@part.claim("C10f", "with a split the test loss ends at its minimum, within 2 %", source="Figure 1a")
def ends_at_its_minimum(m: Measurements[Params]) -> Judgement:
    return _last_over_least(m, TV, "0.01/0.001").at_most(1.02)


@part.claim("C10g", "without one it falls and rises again: both ends 5 % above an inner minimum", source="Figure 1b")
def falls_and_rises(m: Measurements[Params]) -> Judgement:
    return _ends_over_least(m, TT, "0.01/0.001").at_least(1.05)


@part.claim(
    "C10h",
    "the activation moves the loss by less than a quarter of the gap, with a split",
    source="Table 1, synthetic",
)
def activation_matters_little(m: Measurements[Params]) -> Judgement:
    change = (_printed(m, "test_loss", TV, variant="relu") - _printed(m, "test_loss", TV)).map(abs)
    return (change - _gap(m) * 0.25).named("|ReLU − Huberized| − gap/4").below(0)


@part.claim("C10i", "the gap is larger at J = 5 than at J = 1", source="Table 2, synthetic")
def steps_widen(m: Measurements[Params]) -> Judgement:
    return (_gap(m) - _gap(m, "one step")).named("gap at 5 − gap at 1").above(0)


@part.claim("C10j", "the gap is smaller with the outer above the inner rate", source="Table 3, synthetic")
def swapped_narrows(m: Measurements[Params]) -> Judgement:
    return (_gap(m) - _gap(m, "swapped rates")).named("gap − gap swapped").above(0)


@part.claim(
    "C10k",
    "at the other pair of printed rates, with a split: the test loss ends at its minimum, within 2 %",
    source="Figure 1a",
)
def ends_at_its_minimum_too(m: Measurements[Params]) -> Judgement:
    return _last_over_least(m, TV, "0.001/0.0001").at_most(1.02)


@part.claim("C10l", "and without one: both ends 5 % above an inner minimum", source="Figure 1b")
def falls_and_rises_too(m: Measurements[Params]) -> Judgement:
    return _ends_over_least(m, TT, "0.001/0.0001").at_least(1.05)
