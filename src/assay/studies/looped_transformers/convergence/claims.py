"""The claims on the loop's error: its bounds and exact form (C3, C4), every loop helps (C5k), and Figure 8.1 (C6)."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from assay.lab import Every, Judgement, Measurements, Values, combine

from .arms import OTHER_INPUTS, Params, part
from .theory import fitted_slope, slope

ROUNDING = 1e-12
FLOOR = 1e-26  # of squared errors: below it float64 rounding, and no longer gradient descent, is measured


def above_floor(m: Measurements[Params], arm: str, floor: float = FLOOR, **where: object) -> pl.DataFrame:
    """A row per loop with squared_error, task_error and condition, where both errors, squared, are above the floor."""
    rows = m.rows(["squared_error", "task_error"], arm=arm, **where)
    labels = [column for column in ("examples", "inputs") if column in rows.columns]
    errors = rows.pivot("metric", index=[*labels, "seed", "step"], values="value")
    conditions = m.rows("condition", arm=arm, **where).select(*labels, "seed", condition="value")
    joined = errors.join(conditions, on=[*labels, "seed"], nulls_equal=True)
    above = (pl.col("squared_error") > floor) & (pl.col("task_error").pow(2) > floor)
    return kept(joined, above, "squared_error", "task_error", "condition")


def kept(rows: pl.DataFrame, wanted: pl.Expr, *columns: str) -> pl.DataFrame:
    """The wanted rows. One in which a column is not finite stays as well, with NaN in all of them: a bound that is
    infinite, or an error that is not known, must not leave the rest of the row to be judged."""
    whole = pl.all_horizontal(pl.col(columns).is_finite())
    return rows.filter(~whole | wanted).with_columns(
        pl.when(whole).then(pl.col(columns)).otherwise(float("nan")).name.keep()
    )


def worst(frame: pl.DataFrame, ratio: pl.Expr, what: str) -> Every:
    return Every(frame.with_columns(value=ratio), what)


def fitted_slopes(m: Measurements[Params], n: int) -> Values:
    """The slope of log squared error over the later half of the loops above the floor, per seed."""
    return m.per_seed(
        m.curve("squared_error", arm="convergence", examples=n),
        lambda rows: fitted_slope(rows["step"].to_numpy(), rows["value"].to_numpy(), FLOOR),
        f"slope at n = {n}",
    )


def _sharp_ratio(rows: pl.DataFrame) -> Every:
    """‖θ − θ*‖²/(1 − 1/κ)^{2t} for t ≥ 1. Rounding moves the tiny error itself, hence a tolerance."""
    later = rows.filter(pl.col("step") >= 1)
    bound = (1 - 1 / pl.col("condition")).pow(2 * pl.col("step"))
    return worst(later, pl.col("squared_error") / bound, "squared error/sharp bound, t ≥ 1")


@part.claim(
    "C3",
    "The transformer's error on the task, |⟨q, θ*⟩ − α|, is after every loop at most |α| times the distance from θ* of "
    "descent run beside it.",
    source="Lemma 8.15; of its own iterate it is Cauchy's inequality, hence descent written out",
)
def task_below_parameter(m: Measurements[Params]) -> Judgement:
    # A difference over all loops, not a ratio: a tiny task error carries the rounding of numbers of size α.
    distance = m.every("descent_squared_error", arm="convergence").map(math.sqrt)
    excess = m.every("task_error", arm="convergence") / abs(m.params.alpha) - distance
    return excess.named("task error/|α| − distance of descent").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C4a",
    "With steps of 1/L, the looped transformer's error |⟨q, θ*⟩ − α| after T loops is at most |α|exp(−T/(2κ)), κ being "
    "the prompt's condition number, as long as it is above the rounding of float64.",
    source="Theorem 8.16",
    headline=True,
)
def theorem(m: Measurements[Params]) -> Judgement:
    bound = abs(m.params.alpha) * (-pl.col("step") / (2 * pl.col("condition"))).exp()
    rows = above_floor(m, "convergence").filter(pl.col("step") >= 1)
    return worst(rows, pl.col("task_error") / bound, "error/bound, t ≥ 1").at_most(1)


@part.claim(
    "C4b",
    "With steps of 1/L the distance from θ* after T loops is at most (1 − 1/κ)^T, as long as it is above the rounding "
    "of float64.",
    source="Lemma 8.23 and Theorem 8.25, for a quadratic",
    printed="‖θ⁽ᵗ⁾ − θ*‖² ≤ (1 − 1/κ)^t, so the rate exp(−T/(2κ)), called tight: half the exponent, or less, of the "
    "quadratic's (1 − 1/κ)^{2t}",
)
def sharp(m: Measurements[Params]) -> Judgement:
    return _sharp_ratio(above_floor(m, "convergence")).at_most(1, tolerance=1e-9)


@part.claim(
    "C4c",
    "The bound (1 − 1/κ)^T on the distance from θ* is attained at every loop where θ* is the weakest eigen-direction "
    "of XᵀX, as long as it is above 10⁻⁶.",
    source="C4b, its sharpness",
)
def attained(m: Measurements[Params]) -> Judgement:
    # Relative rounding of (1 − 1/κ)^t grows as the error falls: stop far above the floor.
    rows = above_floor(m, "other-inputs", floor=1e-12, inputs="weakest")
    return _sharp_ratio(rows).between(1, 1, tolerance=1e-8)


@part.claim(
    "C4d",
    "Every eigen-direction of XᵀX is learned at its own rate, (1 − ηλ)^t, so that the error on the task is exactly "
    "−αθ*ᵀ(I − ηXᵀX)^Tθ*.",
    source="Derived from Theorem 8.14: sharper than its bounds",
)
def exact(m: Measurements[Params]) -> Judgement:
    rows = m.rows(["trajectory_deviation", "error_deviation"], arm="convergence")
    return Every(rows, "|θ − formula| and |error − formula|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C4f",
    "On signs, heavy tails, sparse inputs and a spectrum with κ = 100 the distance from θ* after T loops stays within "
    "(1 − 1/κ)^T, above rounding.",
    source="Remark 8.8, Theorem 8.25",
)
def any_inputs(m: Measurements[Params]) -> Judgement:
    rows = pl.concat([above_floor(m, "other-inputs", inputs=name) for name in OTHER_INPUTS])
    return _sharp_ratio(rows).at_most(1, tolerance=1e-9)


@part.claim(
    "C5k",
    "With steps of 1/L the looped transformer's error on the task does not rise from any loop to the next (within "
    "1 %), as long as it is above rounding.",
    source="Theorem 8.16 and its discussion",
)
def loops_help(m: Measurements[Params]) -> Judgement:
    rows = above_floor(m, "convergence").sort("examples", "seed", "step")
    before = rows.with_columns(before=pl.col("task_error").shift(1).over("examples", "seed")).drop_nulls("before")
    falls = worst(before, pl.col("task_error") / pl.col("before"), "error/error a loop earlier")
    return falls.at_most(1, tolerance=1e-2)  # errors near 1e-13 carry rounding of 1e-16: a thousandth


def _source_sizes(params: Params) -> bool:
    return params.dim == 4 and tuple(params.examples) == (16, 32, 64, 128)


def _source_loops(params: Params) -> bool:
    return params.loops == 200


FOUR_SIZES = {"d = 4 and n = 16, 32, 64, 128": _source_sizes}
AT_200 = FOUR_SIZES | {"200 loops": _source_loops}


@part.claim(
    "C6a",
    "At every number of examples the squared distance from θ* stays below e^{−t/κ} of its own prompt, as long as it is "
    "above rounding.",
    source="Figure 8.1",
)
def below_bound(m: Measurements[Params]) -> Judgement:
    rows = above_floor(m, "convergence").filter(pl.col("step") >= 1)
    bound = (-pl.col("step") / pl.col("condition")).exp()
    return worst(rows, pl.col("squared_error") / bound, "squared error/e^{−t/κ}, t ≥ 1").at_most(1)


@part.claims_over(
    {"C6b": {"few": 16, "many": 32}, "C6c": {"few": 32, "many": 64}, "C6d": {"few": 64, "many": 128}},
    statement="The looped transformer's squared error falls faster, loop by loop, with {many} examples in the prompt "
    "than with {few}.",
    source="Figure 8.1",
    when=FOUR_SIZES,
)
def steeper(m: Measurements[Params], *, few: int, many: int) -> Judgement:
    change = fitted_slopes(m, many) - fitted_slopes(m, few)
    return change.named(f"slope at n = {many} − slope at n = {few}").below(0)


@part.claim(
    "C6e",
    "The looped transformer's log squared error ends on the slope 2 ln(1 − 1/κ), more than twice as steep as its "
    "bound's, −1/κ.",
    source="Derived; the source gives the slope −1/κ of its bound",
    printed="−1/κ",
    headline=True,
)
def asymptotic_slope(m: Measurements[Params]) -> Judgement:
    ratios = [
        fitted_slopes(m, n) / m.final("condition", arm="convergence", examples=n).map(slope) for n in m.params.examples
    ]
    because = "a tenth of the way to the slope of the bound, which is less than half as steep"
    return combine(np.mean, ratios, "fitted/predicted slope, mean over n").equals(1, within=0.05, because=because)


@part.claim(
    "C6f",
    "From 16 examples in the prompt to 128, the gap between the slopes of the squared error and of its bound e^{−t/κ} "
    "widens.",
    source="Section 8.6, in terms of gradient descent",
    printed="the gap between the empirical and the theoretical curves narrows as n grows",
    when=FOUR_SIZES,
)
def gap_widens(m: Measurements[Params]) -> Judgement:
    bounds = [m.final("condition", arm="convergence", examples=n).map(lambda kappa: -1 / kappa) for n in (16, 128)]
    few, many = (bound - fitted_slopes(m, n) for n, bound in zip((16, 128), bounds, strict=True))
    return (many - few).named("steepness beyond the bound, n = 128 − n = 16").above(0)


def _share_above_bound(m: Measurements[Params], metric: str) -> Judgement:
    bound = m.final("condition", arm="convergence", examples=128).map(lambda kappa: float(np.exp(-200 / kappa)))
    above = (m.final(metric, arm="convergence", examples=128) - bound).map(lambda gap: float(gap > 0))
    right_or_wrong = dict.fromkeys(above.by_seed, 1)
    return Values.measured(above.by_seed, "share of trials above the bound at t = 200", right_or_wrong).at_least(0.5)


@part.claim(
    "C6g",
    "After 200 loops with 128 examples, the rounding of float64 holds the squared distance of plain gradient descent "
    "from θ* above e^{−t/κ} in at least half of the trials.",
    source="Figure 8.1 in floating point, θ ← θ − η(XᵀXθ − Xᵀy): what narrows the gap in the source's picture",
    when=AT_200,
)
def float_floor(m: Measurements[Params]) -> Judgement:
    return _share_above_bound(m, "descent_squared_error")


@part.claim(
    "C6h",
    "After 200 loops with 128 examples, the rounding of float64 holds the transformer's squared distance from θ* above "
    "e^{−t/κ} in at least half of the trials.",
    source="Figure 8.1 in floating point; the transformer forms residuals first",
    when=AT_200,
)
def float_floor_of_transformer(m: Measurements[Params]) -> Judgement:
    return _share_above_bound(m, "squared_error")
