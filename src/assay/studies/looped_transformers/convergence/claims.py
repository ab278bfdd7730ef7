"""The claims on the loop's error: its bounds and exact form (C3, C4), every loop helps (C5k), and Figure 8.1 (C6)."""

from __future__ import annotations

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


@part.claim("C3", "|⟨TF, θ*⟩ − α| ≤ |α|·‖θ⁽ᵀ⁾ − θ*‖ after every loop", source="Lemma 8.15")
def task_below_parameter(m: Measurements[Params]) -> Judgement:
    # A difference over all loops, not a ratio: a tiny task error carries the rounding of numbers of size α.
    excess = pl.col("task_error") / abs(m.params.alpha) - pl.col("squared_error").sqrt()
    every = worst(above_floor(m, "convergence", floor=-1.0), excess, "task error/|α| − parameter error")
    return every.at_most(0, tolerance=ROUNDING)


@part.claim(
    "C4a", "with η = 1/L from zero the error is at most |α|exp(−T/(2κ)) after every loop", source="Theorem 8.16"
)
def theorem(m: Measurements[Params]) -> Judgement:
    bound = abs(m.params.alpha) * (-pl.col("step") / (2 * pl.col("condition"))).exp()
    rows = above_floor(m, "convergence").filter(pl.col("step") >= 1)
    return worst(rows, pl.col("task_error") / bound, "error/bound, t ≥ 1").at_most(1)


@part.claim(
    "C4b",
    "the parameter error is at most (1 − 1/κ)^T after every loop while it is above the float floor",
    source="Lemma 8.23 and Theorem 8.25, for a quadratic",
    printed="‖θ⁽ᵗ⁾ − θ*‖² ≤ (1 − 1/κ)^t, so the rate exp(−T/(2κ)), called tight: half the exponent, or less, of the "
    "quadratic's (1 − 1/κ)^{2t}",
)
def sharp(m: Measurements[Params]) -> Judgement:
    return _sharp_ratio(above_floor(m, "convergence")).at_most(1, tolerance=1e-9)


@part.claim("C4c", "that bound is attained where θ* is the weakest direction of XᵀX", source="C4b, its sharpness")
def attained(m: Measurements[Params]) -> Judgement:
    # Relative rounding of (1 − 1/κ)^t grows as the error falls: stop far above the floor.
    rows = above_floor(m, "other-inputs", floor=1e-12, inputs="weakest")
    return _sharp_ratio(rows).between(1, 1, tolerance=1e-8)


@part.claim(
    "C4d",
    "the error is exactly −αθ*ᵀ(I − ηXᵀX)^Tθ*",
    source="Derived from Theorem 8.14: sharper than its bounds",
)
def exact(m: Measurements[Params]) -> Judgement:
    return m.every("error_deviation", arm="convergence").named("|error − formula|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C4e",
    "every eigen-direction of XᵀX is learned at its own rate, (1 − ηλ)^t",
    source="Derived from Theorem 8.14",
)
def every_direction(m: Measurements[Params]) -> Judgement:
    deviations = m.every("trajectory_deviation", arm="convergence")
    return deviations.named("|θ − formula|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C4f",
    "the sharp bound needs no distribution: it holds for signs, heavy tails, sparse inputs and κ = 100",
    source="Remark 8.8, Theorem 8.25",
)
def any_inputs(m: Measurements[Params]) -> Judgement:
    rows = pl.concat([above_floor(m, "other-inputs", inputs=name) for name in OTHER_INPUTS])
    return _sharp_ratio(rows).at_most(1, tolerance=1e-9)


@part.claim("C5k", "more loops never hurt: the error falls with every loop", source="Theorem 8.16 and its discussion")
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
    "at every n the squared error stays below e^{−t/κ} of its own prompt while it is above the float floor",
    source="Figure 8.1",
)
def below_bound(m: Measurements[Params]) -> Judgement:
    rows = above_floor(m, "convergence").filter(pl.col("step") >= 1)
    bound = (-pl.col("step") / pl.col("condition")).exp()
    return worst(rows, pl.col("squared_error") / bound, "squared error/e^{−t/κ}, t ≥ 1").at_most(1)


@part.claims_over(
    {"C6b": {"few": 16, "many": 32}, "C6c": {"few": 32, "many": 64}, "C6d": {"few": 64, "many": 128}},
    statement="the error falls faster with {many} examples than with {few}",
    source="Figure 8.1",
    when=FOUR_SIZES,
)
def steeper(m: Measurements[Params], *, few: int, many: int) -> Judgement:
    change = fitted_slopes(m, many) - fitted_slopes(m, few)
    return change.named(f"slope at n = {many} − slope at n = {few}").below(0)


@part.claim(
    "C6e",
    "the slope of the log squared error tends to 2 ln(1 − 1/κ)",
    source="Derived; the source gives the slope −1/κ of its bound",
    printed="−1/κ",
)
def asymptotic_slope(m: Measurements[Params]) -> Judgement:
    ratios = [
        fitted_slopes(m, n) / m.final("condition", arm="convergence", examples=n).map(slope) for n in m.params.examples
    ]
    return combine(np.mean, ratios, "fitted/predicted slope, mean over n").between(0.99, 1.1)


@part.claim(
    "C6f",
    "the gap between the slopes of error and bound widens with n",
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
    return above.named("share of trials above the bound at t = 200").at_least(0.5)


@part.claim(
    "C6g",
    "after 200 loops at n = 128 plain descent in float64 stands still above e^{−t/κ}: this is what narrows the gap",
    source="Figure 8.1 in floating point, θ ← θ − η(XᵀXθ − Xᵀy)",
    when=AT_200,
)
def float_floor(m: Measurements[Params]) -> Judgement:
    return _share_above_bound(m, "descent_squared_error")


@part.claim(
    "C6h",
    "so does the transformer's own trajectory in most trials",
    source="Figure 8.1 in floating point; the transformer forms residuals first",
    when=AT_200,
)
def float_floor_of_transformer(m: Measurements[Params]) -> Judgement:
    return _share_above_bound(m, "squared_error")
