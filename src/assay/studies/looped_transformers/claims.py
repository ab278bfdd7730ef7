"""The claims of the source, each with a criterion that can fail, its corrections, the extension and the controls."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

from assay.lab import Every, Judgement, Measurements, Values, combine

from . import theory, trained_claims  # noqa: F401 (the claims on training register themselves)
from .study import OTHER_INPUTS, study

EXACT = 1e-12
SOURCE_SIZE = {"d = 4": lambda p: p.dim == 4}
FOUR_SIZES = {"d = 4 and n = 16, 32, 64, 128": lambda p: p.dim == 4 and tuple(p.examples) == (16, 32, 64, 128)}


FLOOR = 1e-26  # of squared errors: below it float64 rounding, and no longer gradient descent, is measured


def above_floor(m: Measurements, arm: str, floor: float = FLOOR, **where: object) -> pl.DataFrame:
    """A row per loop with squared_error, task_error and condition, where both errors, squared, are above the floor."""
    rows = m.rows(["squared_error", "task_error"], arm=arm, **where)
    labels = [column for column in ("examples", "inputs") if column in rows.columns]
    errors = rows.pivot("metric", index=[*labels, "seed", "step"], values="value")
    conditions = m.rows("condition", arm=arm, **where).select(*labels, "seed", condition="value")
    joined = errors.join(conditions, on=[*labels, "seed"], nulls_equal=True)
    above = (pl.col("squared_error") > floor) & (pl.col("task_error").pow(2) > floor)
    return _kept(joined, above, "squared_error", "task_error", "condition")


def _kept(rows: pl.DataFrame, wanted: pl.Expr, *columns: str) -> pl.DataFrame:
    """The wanted rows. One in which a column is not finite stays as well, with NaN in all of them: a bound that is
    infinite, or an error that is not known, must not leave the rest of the row to be judged."""
    whole = pl.all_horizontal(pl.col(columns).is_finite())
    return rows.filter(~whole | wanted).with_columns(
        pl.when(whole).then(pl.col(columns)).otherwise(float("nan")).name.keep()
    )


def fitted_slopes(m: Measurements, n: int) -> Values:
    """The slope of log squared error over the later half of the loops above the floor, per seed."""
    return m.per_seed(
        m.curve("squared_error", arm="convergence", examples=n),
        lambda rows: theory.fitted_slope(rows["step"].to_numpy(), rows["value"].to_numpy(), FLOOR),
        f"slope at n = {n}",
    )


def _worst(frame: pl.DataFrame, ratio: pl.Expr, what: str) -> Every:
    return Every(frame.with_columns(value=ratio), what)


_IDENTITIES = {
    "C1": ("a masked linear-attention layer with Q = I, P = diag(I, 0) outputs (qᵀXᵀX + αyᵀX, 0) in the query row "
            "and zero elsewhere",
            "Lemma 8.13; three shapes, zero and random start, relative to the largest entry",
            ("identity", "layer_deviation", "deviation", EXACT)),
    "C2a": ("after every loop the query row is −αθ⁽ᵗ⁾ of gradient descent, also with steps that vary",
            "Theorem 8.14; 50 loops",
            ("identity", "loop_deviation", "|θ − θ of descent|", EXACT)),
    "C2b": ("the examples and α never change, bit for bit",
            "Lemma 8.13",
            ("identity", "rest_moved", "change of the other entries", 0.0)),
    "C2c": ("with noisy targets the loop ends at the least-squares solution",
            "Definition 8.10 without the realisability of Lemma 8.11; 1,000 loops",
            ("noise", "from_least_squares", "|θ − least squares|", EXACT)),
    "C2d": ("the probe reads the step sizes of the first five loops off the query states",
            "Theorem 8.14 read backwards",
            ("identity", "probe_step_deviation", "|η fitted/η − 1|", 1e-9)),
    "C4d": ("the error is exactly −αθ*ᵀ(I − ηXᵀX)^Tθ*",
            "Derived from Theorem 8.14: sharper than its bounds",
            ("convergence", "error_deviation", "|error − formula|", EXACT)),
    "C4e": ("every eigen-direction of XᵀX is learned at its own rate, (1 − ηλ)^t",
            "Derived from Theorem 8.14",
            ("convergence", "trajectory_deviation", "|θ − formula|", EXACT)),
}  # fmt: skip


def _identity(id: str) -> None:
    statement, source, (arm, metric, what, tolerance) = _IDENTITIES[id]

    @study.claim(id, statement, source=source)
    def holds(m: Measurements) -> Judgement:
        return m.every(metric, arm=arm).named(what).at_most(0, tolerance=tolerance)


for _id in ("C1", "C2a", "C2b", "C2c", "C2d"):
    _identity(_id)


@study.claim("C3", "|⟨TF, θ*⟩ − α| ≤ |α|·‖θ⁽ᵀ⁾ − θ*‖ after every loop", source="Lemma 8.15")
def task_below_parameter(m: Measurements) -> Judgement:
    # A difference over all loops, not a ratio: a tiny task error carries the rounding of numbers of size α.
    excess = pl.col("task_error") / abs(m.params.alpha) - pl.col("squared_error").sqrt()
    every = _worst(above_floor(m, "convergence", floor=-1.0), excess, "task error/|α| − parameter error")
    return every.at_most(0, tolerance=EXACT)


@study.claim(
    "C4a", "with η = 1/L from zero the error is at most |α|exp(−T/(2κ)) after every loop", source="Theorem 8.16"
)
def theorem(m: Measurements) -> Judgement:
    bound = abs(m.params.alpha) * (-pl.col("step") / (2 * pl.col("condition"))).exp()
    rows = above_floor(m, "convergence").filter(pl.col("step") >= 1)
    return _worst(rows, pl.col("task_error") / bound, "error/bound, t ≥ 1").at_most(1)


@study.claim(
    "C4b",
    "the parameter error is at most (1 − 1/κ)^T after every loop while it is above the float floor",
    source="Lemma 8.23 and Theorem 8.25, for a quadratic",
    printed="‖θ⁽ᵗ⁾ − θ*‖² ≤ (1 − 1/κ)^t, so the rate exp(−T/(2κ)), called tight: half the exponent, or less, of the "
    "quadratic's (1 − 1/κ)^{2t}",
)
def sharp(m: Measurements) -> Judgement:
    return _sharp_ratio(above_floor(m, "convergence")).at_most(1, tolerance=1e-9)


def _sharp_ratio(rows: pl.DataFrame) -> Every:
    """‖θ − θ*‖²/(1 − 1/κ)^{2t} for t ≥ 1. Rounding moves the tiny error itself, hence a tolerance."""
    later = rows.filter(pl.col("step") >= 1)
    bound = (1 - 1 / pl.col("condition")).pow(2 * pl.col("step"))
    return _worst(later, pl.col("squared_error") / bound, "squared error/sharp bound, t ≥ 1")


@study.claim("C4c", "that bound is attained where θ* is the weakest direction of XᵀX", source="C4b, its sharpness")
def attained(m: Measurements) -> Judgement:
    # Relative rounding of (1 − 1/κ)^t grows as the error falls: stop far above the floor.
    rows = above_floor(m, "other-inputs", floor=1e-12, inputs="weakest")
    return _sharp_ratio(rows).between(1, 1, tolerance=1e-8)


for _id in ("C4d", "C4e"):
    _identity(_id)


@study.claim(
    "C4f",
    "the sharp bound needs no distribution: it holds for signs, heavy tails, sparse inputs and κ = 100",
    source="Remark 8.8, Theorem 8.25",
)
def any_inputs(m: Measurements) -> Judgement:
    rows = pl.concat([above_floor(m, "other-inputs", inputs=name) for name in OTHER_INPUTS])
    return _sharp_ratio(rows).at_most(1, tolerance=1e-9)


@study.claim(
    "C4g",
    "the step is knowledge of the prompt: 1/L of typical prompts diverges on prompts twice as large",
    source="Remark 8.8",
    printed="the model has no prior knowledge of X",
)
def step_is_knowledge(m: Measurements) -> Judgement:
    error = m.final("parameter_error", arm="fixed-step", scale=2.0).map(np.log10)
    return error.named("log10 of the parameter error after 50 loops").above(0)


MEANS = {16: 4.86, 32: 2.82, 64: 2.03, 128: 1.64}
for _letter, (_n, _mean) in zip("abcd", MEANS.items(), strict=True):

    @study.claim(
        f"C5{_letter}",
        f"the mean condition number at n = {_n} is {_mean} (reference value), within 5 %",
        source="Section 8.6; the reference is 20,000 draws, the source averages 10",
        when=SOURCE_SIZE,
    )
    def mean_condition(m: Measurements, n: int = _n, mean: float = _mean) -> Judgement:
        values = m.final("mean_condition", arm="condition-numbers", examples=n)
        return values.named(f"mean κ at n = {n}").between(0.95 * mean, 1.05 * mean)


@study.claim("C5e", "more examples mean a smaller condition number, at every n", source="Section 8.6")
def falling_condition(m: Measurements) -> Judgement:
    means = [m.final("mean_condition", arm="condition-numbers", examples=n) for n in m.params.examples]
    falls = [a - b for a, b in itertools.pairwise(means)]
    return combine(min, falls, "smallest fall of mean κ").above(0)


for _letter, (_n, _printed) in zip("fghi", {16: 4.57, 32: 3.13, 64: 2.07, 128: 1.62}.items(), strict=True):

    @study.claim(
        f"C5{_letter}",
        f"the printed κ at n = {_n} lies within the 5–95 % band of a mean over 10 trials",
        source="Figure 8.1",
        when={**SOURCE_SIZE, "means over 10 trials": lambda p: p.trials == 10},
        paper=_printed,
    )
    def printed_condition(m: Measurements, n: int = _n) -> Judgement:
        printed = m.paper_value(examples=n, metric="condition")

        def below(conditions: np.ndarray) -> float:
            return float((theory.trial_means(conditions[None], m.params.trials) < printed).mean())

        what = f"share of 10-trial means below {printed:g}"
        shares = m.array_per_seed("conditions", below, what, arm="condition-numbers", examples=n)
        return shares.between(0.05, 0.95)


@study.claim(
    "C5j",
    "with 8 examples per dimension the mean condition number stays below its limit at every dimension",
    source="Theorem 8.1, informal: n = O(d) gives a constant κ; the limit is ((1 + √(d/n))/(1 − √(d/n)))²",
)
def constant_condition(m: Measurements) -> Judgement:
    shares = [
        m.final("mean_condition", arm="dimensions", width=d) / m.final("edge", arm="dimensions", width=d)
        for d in m.params.dims
    ]
    return combine(max, shares, "largest mean κ/limit").below(1)


@study.claim("C5k", "more loops never hurt: the error falls with every loop", source="Theorem 8.16 and its discussion")
def loops_help(m: Measurements) -> Judgement:
    rows = above_floor(m, "convergence").sort("examples", "seed", "step")
    before = rows.with_columns(before=pl.col("task_error").shift(1).over("examples", "seed")).drop_nulls("before")
    falls = _worst(before, pl.col("task_error") / pl.col("before"), "error/error a loop earlier")
    return falls.at_most(1, tolerance=1e-2)  # errors near 1e-13 carry rounding of 1e-16: a thousandth


@study.claim(
    "C6a",
    "at every n the squared error stays below e^{−t/κ} of its own prompt while it is above the float floor",
    source="Figure 8.1",
)
def below_bound(m: Measurements) -> Judgement:
    rows = above_floor(m, "convergence").filter(pl.col("step") >= 1)
    bound = (-pl.col("step") / pl.col("condition")).exp()
    return _worst(rows, pl.col("squared_error") / bound, "squared error/e^{−t/κ}, t ≥ 1").at_most(1)


for _letter, (_few, _many) in zip("bcd", ((16, 32), (32, 64), (64, 128)), strict=True):

    @study.claim(
        f"C6{_letter}",
        f"the error falls faster with {_many} examples than with {_few}",
        source="Figure 8.1",
        when=FOUR_SIZES,
    )
    def steeper(m: Measurements, few: int = _few, many: int = _many) -> Judgement:
        change = fitted_slopes(m, many) - fitted_slopes(m, few)
        return change.named(f"slope at n = {many} − slope at n = {few}").below(0)


@study.claim(
    "C6e",
    "the slope of the log squared error tends to 2 ln(1 − 1/κ)",
    source="Derived; the source gives the slope −1/κ of its bound",
    printed="−1/κ",
)
def asymptotic_slope(m: Measurements) -> Judgement:
    conditions = [m.final("condition", arm="convergence", examples=n) for n in m.params.examples]
    ratios = [
        fitted_slopes(m, n) / kappa.map(theory.slope) for n, kappa in zip(m.params.examples, conditions, strict=True)
    ]
    return combine(np.mean, ratios, "fitted/predicted slope, mean over n").between(0.99, 1.1)


@study.claim(
    "C6f",
    "the gap between the slopes of error and bound widens with n",
    source="Section 8.6, in terms of gradient descent",
    printed="the gap between the empirical and the theoretical curves narrows as n grows",
    when=FOUR_SIZES,
)
def gap_widens(m: Measurements) -> Judgement:
    bounds = [m.final("condition", arm="convergence", examples=n).map(lambda kappa: -1 / kappa) for n in (16, 128)]
    few, many = (bound - fitted_slopes(m, n) for n, bound in zip((16, 128), bounds, strict=True))
    return (many - few).named("steepness beyond the bound, n = 128 − n = 16").above(0)


AT_200 = {**FOUR_SIZES, "200 loops": lambda p: p.loops == 200}


def _share_above_bound(m: Measurements, metric: str) -> Judgement:
    bound = m.final("condition", arm="convergence", examples=128).map(lambda kappa: float(np.exp(-200 / kappa)))
    above = (m.final(metric, arm="convergence", examples=128) - bound).map(lambda gap: float(gap > 0))
    return above.named("share of trials above the bound at t = 200").at_least(0.5)


@study.claim(
    "C6g",
    "after 200 loops at n = 128 plain descent in float64 stands still above e^{−t/κ}: this is what narrows the gap",
    source="Figure 8.1 in floating point, θ ← θ − η(XᵀXθ − Xᵀy)",
    when=AT_200,
)
def float_floor(m: Measurements) -> Judgement:
    return _share_above_bound(m, "descent_squared_error")


@study.claim(
    "C6h",
    "so does the transformer's own trajectory in most trials",
    source="Figure 8.1 in floating point; the transformer forms residuals first",
    when=AT_200,
)
def float_floor_of_transformer(m: Measurements) -> Judgement:
    return _share_above_bound(m, "squared_error")


@study.claim(
    "C7a",
    "one example answers the task exactly, q = αx/y, whatever θ* is",
    source="Definition 8.4 and the remark after it",
    printed="the task is as hard as regression; solving it requires an estimate of θ*",
)
def one_example(m: Measurements) -> Judgement:
    return m.every("task_error", arm="shortcut").named("error/|α|").at_most(0, tolerance=EXACT)


@study.claim("C7b", "that answer is no estimate of θ*: ‖q/α − θ*‖ is at least half of ‖θ*‖", source="C7a")
def one_example_knows_little(m: Measurements) -> Judgement:
    return m.final("parameter_error", arm="shortcut").named("‖q/α − θ*‖").at_least(0.5)


def _log_ratio(m: Measurements, ours: str, theirs: str) -> Values:
    error = m.final("parameter_error", arm="steps", rule=ours) / m.final("parameter_error", arm="steps", rule=theirs)
    return error.map(lambda ratio: float(np.log10(ratio))).named(f"log10 error, {ours} against {theirs}")


for _id, _ours, _theirs, _words in (
    ("C8a", "2/(L+mu)", "1/L", "the best constant step, 2/(L + μ), the error after 12 loops is smaller than with 1/L"),
    ("C8b", "chebyshev", "2/(L+mu)", "Chebyshev steps, one per loop, it is smaller than with the best constant step"),
):

    @study.claim(_id, f"with {_words}", source="Beyond the source: Definition 8.7 allows any steps")
    def better_steps(m: Measurements, ours: str = _ours, theirs: str = _theirs) -> Judgement:
        return _log_ratio(m, ours, theirs).below(0)


@study.claim("C8c", "each rule keeps its own bound at every number of loops", source="Classical rates of each rule")
def rules_keep_bounds(m: Measurements) -> Judgement:
    labels = ["rule", "seed", "step"]
    rows = m.rows(["parameter_error", "bound"], arm="steps").pivot("metric", index=labels, values="value")
    rows = _kept(rows, pl.col("parameter_error") > FLOOR**0.5, "parameter_error", "bound")
    return _worst(rows, pl.col("parameter_error") / pl.col("bound"), "error/bound").at_most(1, tolerance=1e-6)


@study.claim("C8d", "a step of 1.9/L still converges", source="Lemma 8.23 asks for η ≤ 1/L; η < 2/L suffices")
def below_limit(m: Measurements) -> Judgement:
    return m.final("parameter_error", arm="step-limit", rule="1.9/L").at_most(1e-6)


_CHANGED = "Control: one part of the construction changed, 12 loops"


def _broken(m: Measurements, change: str) -> Judgement:
    return m.every("deviation", arm="broken", change=change).named("‖θ − θ of descent‖").at_least(1e-3)


def _diverges(m: Measurements) -> Judgement:
    error = m.final("parameter_error", arm="step-limit", rule="2.1/L").map(lambda value: float(np.log10(value)))
    return error.named("log10 of the parameter error after 200 loops").above(0)


_CONTROLS = {
    "N1": ("a query row that also reads itself does not run gradient descent", _CHANGED,
           lambda m: _broken(m, "query reads itself")),
    "N2": ("nor does the usual lower-triangular mask, which the source's 'causal' suggests", _CHANGED,
           lambda m: _broken(m, "causal mask")),
    "N3": ("nor does P = I, under which α drifts", _CHANGED, lambda m: _broken(m, "P = I")),
    "N4": ("without the final minus sign the prediction tends to −α", "Control: signs",
           lambda m: m.final("unnegated", arm="broken", change="none").named("prediction/α").between(-1.05, -0.95)),
    "N5": ("a step of 2.1/L diverges", "Control: η ≥ 2/L", _diverges),
    "N6": ("with noisy targets the limit is not θ*", "Control: realisability",
           lambda m: m.final("from_truth", arm="noise").named("‖θ − θ*‖").at_least(0.01)),
    "N7": ("the probe sees that a causal mask is not gradient descent", "Control of the probe",
           lambda m: m.every("probe_residual", arm="broken", change="causal mask")
           .named("largest share of a loop's movement off the gradient").at_least(1e-3)),
    "N8": ("on prompts of the expected size one fixed step converges", "Control of C4g",
           lambda m: m.final("parameter_error", arm="fixed-step", scale=1.0).at_most(0.01)),
}  # fmt: skip
for _id, (_statement, _source, _judge) in _CONTROLS.items():
    study.claim(_id, _statement, source=_source)(_judge)
