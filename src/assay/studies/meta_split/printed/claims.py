"""C10: what the printed synthetic configuration shows, and what it does not."""

from __future__ import annotations

import math

import polars as pl

from assay.lab import Every, Judgement, Measurements, Values, combine, pool

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
    statement="With the constants printed for the source's synthetic experiment, FOMAML ends with a lower test loss "
    "with a split than without one (inner and outer rate {rates}).",
    source="Table 1, synthetic; the order only: T, M, n₁ and the test are not printed, rates are printed twice",
    paper="8.50 without, 4.66 with a split",
)
def lower_loss(m: Measurements[Params], *, rates: str) -> Judgement:
    losses = [_printed(m, "test_loss", split, rates) for split in (TT, TV)]
    return (losses[0] - losses[1]).named("loss without − with a split").above(0)


@part.claim(
    "C10c",
    "With the source's printed constants nothing is learned with a split, at either pair of printed rates: accuracy "
    "ends below 0.6.",
    source="Section 5.1, synthetic",
    printed="the lower loss shows that the split learns the feature",
    headline=True,
)
def nothing_learned(m: Measurements[Params]) -> Judgement:
    accuracies = [_printed(m, "test_accuracy", TV, rates) for rates in RATES]
    return combine(max, accuracies, "test accuracy, larger of both pairs").below(0.6)


@part.claim(
    "C10d",
    "With the source's printed constants the test loss with a split ends above log 2, that of a constant answer, at "
    "both pairs of rates.",
    source="Section 5.1, synthetic",
)
def above_a_constant(m: Measurements[Params]) -> Judgement:
    return _both(m, "test_loss").at_least(math.log(2))


@part.claim(
    "C10e",
    "With the source's printed constants alignment with noise ends over ten times that with the feature, with a split, "
    "at both pairs of rates.",
    source="Section 5.1, synthetic",
)
def noise_over_feature(m: Measurements[Params]) -> Judgement:
    return _both(m, "largest_feature_over_noise").named("Λ/Ξ").at_most(0.1)


@part.claims_over(
    {"C10f": {"rates": "0.01/0.001"}, "C10k": {"rates": "0.001/0.0001"}},
    statement="With the source's printed constants and a split the test loss ends within 2 % of its least (inner and "
    "outer rate {rates}).",
    source="Figure 1a",
)
def ends_at_its_minimum(m: Measurements[Params], *, rates: str) -> Judgement:
    return _last_over_least(m, TV, rates).at_most(1.02)


@part.claims_over(
    {"C10g": {"rates": "0.01/0.001"}, "C10l": {"rates": "0.001/0.0001"}},
    statement="With the source's printed constants and no split the test loss falls and rises again: both ends 5 % "
    "above its least (rates {rates}).",
    source="Figure 1b",
)
def falls_and_rises(m: Measurements[Params], *, rates: str) -> Judgement:
    return _ends_over_least(m, TT, rates).at_least(1.05)


@part.claim(
    "C10h",
    "With the source's printed constants (rates 0.001/0.0001) ReLU instead of its Huberized form moves the test loss "
    "with a split by under a quarter of what a split lowers it by.",
    source="Table 1, synthetic",
)
def activation_matters_little(m: Measurements[Params]) -> Judgement:
    change = (_printed(m, "test_loss", TV, variant="relu") - _printed(m, "test_loss", TV)).map(abs)
    return (change - _gap(m) * 0.25).named("|ReLU − Huberized| − gap/4").below(0)


@part.claim(
    "C10i",
    "With the source's printed constants (rates 0.001/0.0001) a split lowers the test loss by more with five inner "
    "steps than with one.",
    source="Table 2, synthetic",
)
def steps_widen(m: Measurements[Params]) -> Judgement:
    return (_gap(m) - _gap(m, "one step")).named("gap at 5 − gap at 1").above(0)


@part.claim(
    "C10j",
    "With the source's printed constants (rates 0.001/0.0001) a split lowers the test loss by less when inner and "
    "outer rate are swapped.",
    source="Table 3, synthetic",
)
def swapped_narrows(m: Measurements[Params]) -> Judgement:
    return (_gap(m) - _gap(m, "swapped rates")).named("gap − gap swapped").above(0)
