"""Figure 8.1 redrawn from the transformer's own trajectory, the bounds, the step rules, the trained weights; tables."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, NotMeasured, Values, charts

from . import theory
from .claims import fitted_slopes
from .study import BROKEN, TRAINED, study

_DASHES = alt.Scale(range=[[1, 0], [5, 3]])
_LONG = alt.Legend(symbolSize=400)


def _powers_of_ten(values: pl.Series) -> dict[str, Any]:
    """A logarithmic axis with a tick, and a grid line, at every power of ten alone."""
    low, high = math.floor(math.log10(values.min())), math.ceil(math.log10(values.max()))
    ticks = [10.0**power for power in range(low, high + 1)]
    return {
        "scale": alt.Scale(type="log", domain=[ticks[0], ticks[-1]]),
        "axis": alt.Axis(values=ticks, format=".0e"),
    }


def _mean_curves(m: Measurements) -> pl.DataFrame:
    """Per n and t: the mean over trials of the squared error and of each trial's own bounds."""
    labels = ["examples", "seed"]
    conditions = m.rows("condition", arm="convergence").select(*labels, condition="value")
    rows = m.rows("squared_error", arm="convergence").join(conditions, on=labels)
    t, kappa = pl.col("step"), pl.col("condition")
    return rows.group_by("examples", "step", maintain_order=True).agg(
        error=pl.col("value").mean(),
        squared=(-t / kappa).exp().mean(),
        printed=(-t / (2 * kappa)).exp().mean(),
        kappa=kappa.mean(),
    )


@study.figure(
    "convergence",
    caption="Figure 8.1 from the transformer's own trajectory: natural log of the mean over trials of the squared "
    "relative parameter error (solid), and of the mean of each trial's bound (dashed). Left: e^{−t/κ}, which matches a "
    "squared error. Right: e^{−t/(2κ)}, the exponent of Theorem 8.16, which is about an error that is not squared. The "
    "flat ends are float64 rounding: there, on the left, the error meets its bound from below, which the source reads "
    "as a narrowing gap.",
)
def convergence(m: Measurements) -> alt.HConcatChart:
    frame = _mean_curves(m)
    kappas = dict(frame.select("examples", "kappa").unique().iter_rows())
    names = {n: f"n = {n} (κ = {kappas[n]:.2f})" for n in m.params.examples}
    parts = []
    for column, title in (("squared", "bound e^{−t/κ}"), ("printed", "bound e^{−t/(2κ)}")):
        long = frame.unpivot(["error", column], index=["examples", "step"], value_name="mean").filter(
            pl.col("mean") > 0
        )
        shown = long.with_columns(
            pl.col("mean").log().alias("log"),
            curve=pl.col("examples").replace_strict(names),
            kind=pl.when(pl.col("variable") == "error").then(pl.lit("transformer")).otherwise(pl.lit("bound")),
        )
        parts.append(
            alt.Chart(shown, width=330, height=300, title=title)
            .mark_line()
            .encode(
                x=alt.X("step:Q", title="loops t"),
                y=alt.Y("log:Q", title="log of the mean squared error", scale=alt.Scale(domain=[-110, 0])),
                color=alt.Color("curve:N", title=None, sort=list(names.values())),
                strokeDash=alt.StrokeDash(
                    "kind:N", title=None, sort=["transformer", "bound"], scale=_DASHES, legend=_LONG
                ),
                tooltip=["curve:N", "kind:N", "step:Q", alt.Tooltip("log:Q", format=".1f")],
            )
        )
    return alt.hconcat(*parts)


@study.figure(
    "slopes",
    caption="Left: the fitted slope of the log squared error of every trial, over the later half of the loops above "
    "the float floor, against 2 ln(1 − 1/κ) of its prompt (line: equal). Right: how much steeper the error falls than "
    "e^{−t/κ}, mean and 95 % interval over trials. In slopes the gap between error and bound widens with n.",
)
def slopes(m: Measurements) -> alt.HConcatChart:
    frames = []
    for n in m.params.examples:
        fitted, kappa = fitted_slopes(m, n), m.final("condition", arm="convergence", examples=n)
        frames.append(
            pl.DataFrame(
                {
                    "n": [f"n = {n}"] * len(kappa.by_seed),
                    "seed": sorted(kappa.by_seed),
                    "predicted": [theory.slope(value) for value in kappa.array],
                    "fitted": fitted.array,
                    "gap": -1 / kappa.array - fitted.array,
                }
            )
        )
    frame = pl.concat(frames)
    order = [f"n = {n}" for n in m.params.examples]
    ends = pl.DataFrame({"predicted": [frame["predicted"].min(), frame["predicted"].max()]})
    line = alt.Chart(ends).mark_line(color="#888").encode(x="predicted:Q", y="predicted:Q")
    dots = (
        alt.Chart(frame, width=300, height=260)
        .mark_point(filled=True, opacity=0.7)
        .encode(
            x=alt.X("predicted:Q", title="predicted slope 2 ln(1 − 1/κ)"),
            y=alt.Y("fitted:Q", title="fitted slope"),
            color=alt.Color("n:N", title=None, sort=order),
        )
    )
    base = alt.Chart(charts.summarise(frame, "n", value="gap"), width=220, height=260).encode(
        x=alt.X("n:N", sort=order, title=None), color=alt.Color("n:N", title=None, sort=order)
    )
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title="steepness beyond the bound"), y2="high:Q")
    return alt.hconcat(line + dots, bars + base.mark_point(filled=True, size=70).encode(y="mean:Q"))


@study.figure(
    "bounds",
    caption="Left: the task error against the number of loops, as measured and by the exact formula (they coincide), "
    "with the sharp bound and the theorem's, means over trials at the smallest n. Right: the examples that the earlier "
    "bound of Theorem 8.17 asks for before it says anything, beside the n of these runs, where the loop needs no more. "
    "That bound is about a trained model on regression, so the comparison is the source's argument and no proof.",
)
def bounds(m: Measurements) -> alt.HConcatChart:
    n, most = m.params.examples[0], min(60, m.params.loops)
    kappa = m.final("condition", arm="convergence", examples=n).array
    alpha, rows = abs(m.params.alpha), []
    for metric, name in (("task_error", "measured"), ("exact_error", "exact formula")):
        curve = m.rows(metric, arm="convergence", examples=n).group_by("step", maintain_order=True)
        rows += [(name, t, error) for t, error in curve.agg(pl.col("value").mean()).iter_rows() if t <= most]
    for t in range(most + 1):
        rows.append(("sharp bound (1 − 1/κ)^T", t, float(np.mean(alpha * (1 - 1 / kappa) ** t))))
        rows.append(("theorem exp(−T/(2κ))", t, float(np.mean(alpha * np.exp(-t / (2 * kappa))))))
    frame = pl.DataFrame(rows, schema=["curve", "loops", "error"], orient="row")
    order = ["exact formula", "measured", "sharp bound (1 − 1/κ)^T", "theorem exp(−T/(2κ))"]
    base = alt.Chart(frame, width=330, height=280, title=f"n = {n}").encode(
        x=alt.X("loops:Q", title="loops T"),
        y=alt.Y("error:Q", title="task error", **_powers_of_ten(frame["error"])),
        color=alt.Color("curve:N", title=None, sort=order, legend=alt.Legend(orient="bottom", columns=2)),
    )
    lines = base.transform_filter("datum.curve != 'measured'").mark_line()
    dots = base.transform_filter("datum.curve == 'measured' && datum.loops % 4 == 0").mark_point(filled=True, size=40)
    return alt.hconcat(lines + dots, _examples_needed(m)).resolve_scale(color="independent")


def _examples_needed(m: Measurements) -> alt.LayerChart:
    needed = [(t, math.log10(theory.competing_examples(t, m.params.dim))) for t in range(1, 31)]
    frame = pl.DataFrame(needed, schema=["loops", "examples"], orient="row")
    base = alt.Chart(frame, width=250, height=280, title="examples needed").encode(x=alt.X("loops:Q", title="loops T"))
    line = base.mark_line().encode(y=alt.Y("examples:Q", title="log10 of n", scale=alt.Scale(domainMin=0)))
    used = pl.DataFrame({"value": [math.log10(n) for n in m.params.examples]})
    rule = alt.Chart(used).mark_rule(color="#d55e00", strokeDash=[4, 3]).encode(y="value:Q")
    words = pl.DataFrame({"x": [18.5, 30.0], "y": [30.0, 2.6], "text": ["Theorem 8.17", "n of these runs"]})
    label = alt.Chart(words).mark_text(align="right", baseline="bottom").encode(x="x:Q", y="y:Q", text="text:N")
    return alt.layer(line, rule, label)


@study.figure(
    "steps",
    caption="Parameter error (solid, geometric mean over trials) and bound (dashed) against the number of loops for "
    "three rules of step sizes on the same prompts. Every T is a run of its own, since Chebyshev steps depend on it.",
)
def steps(m: Measurements) -> alt.Chart:
    rows = m.rows(["parameter_error", "bound"], arm="steps").filter(pl.col("value") > 0)
    frame = (
        rows.group_by("rule", "step", "metric", maintain_order=True)
        .agg(value=pl.col("value").log().mean().exp())
        .with_columns(kind=pl.col("metric").replace_strict({"parameter_error": "measured", "bound": "bound"}))
    )
    return (
        alt.Chart(frame, width=440, height=300)
        .mark_line()
        .encode(
            x=alt.X("step:Q", title="loops T"),
            y=alt.Y("value:Q", title="parameter error", **_powers_of_ten(frame["value"])),
            color=alt.Color("rule:N", title=None, sort=["1/L", "2/(L+mu)", "chebyshev"]),
            strokeDash=alt.StrokeDash("kind:N", title=None, sort=["measured", "bound"], scale=_DASHES, legend=_LONG),
        )
    )


def _words(point: dict[str, str]) -> str:
    if point["free"] == "step":
        return "step only, task loss"
    return f"from {'random' if point['start'] == 'random' else 'construction'}, {point['loss']} loss"


@study.figure(
    "trained",
    caption="After training (an extension of the source): root mean square errors on fresh prompts of the training "
    "length, at the loops of training and at two and four times as many (geometric mean over seeds). Left the error on "
    "the task, right the distance from θ*. The construction takes 1/L of each prompt, trained transformers one step "
    "for all. Trained on the task from the construction, the answer improves while θ* is lost; from random weights, "
    "further loops undo what was learned.",
)
def trained(m: Measurements) -> alt.HConcatChart:
    frames = []
    for point in TRAINED:
        for who in ("trained", "construction"):
            rows = m.rows(
                ["task_rms", "parameter_rms"], arm="trained", tested=m.params.compared_examples, who=who, **point
            )
            name = _words(point) if who == "trained" else "construction, 1/L"
            frames.append(rows.with_columns(curve=pl.lit(name)))
    frame = (
        pl.concat(frames)
        .group_by("curve", "metric", "step", maintain_order=True)
        .agg(value=pl.col("value").clip(1e-8).log().mean().exp())
    )
    order = ["construction, 1/L", *(_words(point) for point in TRAINED)]
    parts = [
        alt.Chart(frame.filter(metric=metric), width=290, height=280, title=title)
        .mark_line(point=True)
        .encode(
            x=alt.X("step:Q", title="loops", axis=alt.Axis(values=frame["step"].unique().sort().to_list())),
            y=alt.Y("value:Q", title="root mean square", **_powers_of_ten(frame["value"])),
            color=alt.Color("curve:N", title=None, sort=order),
            tooltip=["curve:N", "step:Q", alt.Tooltip("value:Q", format=".3g")],
        )
        for metric, title in (("task_rms", "task error"), ("parameter_rms", "parameter error"))
    ]
    return alt.hconcat(*parts)


@study.table(
    "condition-numbers",
    caption="Mean condition number of XᵀX for Gaussian X with its 95 % interval over seeds, the source's number (a "
    "mean of 10 trials), the 5–95 % band of such means, the share of them below the source's number, and the value "
    "from the edges of a large matrix's spectrum, which overestimates at d = 4.",
)
def condition_numbers(m: Measurements) -> pl.DataFrame:
    rows = []
    for n in m.params.examples:
        printed = m.paper_value(examples=n, metric="condition") if m.params.dim == 4 else None
        means = theory.trial_means(m.array("conditions", arm="condition-numbers", examples=n), m.params.trials)
        low, high = np.quantile(means, [0.05, 0.95])
        rows.append(
            {
                "n": n,
                "mean κ": charts.plus_minus(m.final("mean_condition", arm="condition-numbers", examples=n)),
                "paper κ": printed,
                "5–95 % of 10 trials": f"{low:.2f} to {high:.2f}",
                "share below paper": round(float((means < printed).mean()), 3) if printed else None,
                "spectrum edge": round(theory.edge_condition(n, m.params.dim), 2),
                "asymptotic slope": round(theory.slope(float(means.mean())), 3),
            }
        )
    return pl.DataFrame(rows)


@study.table(
    "steps",
    caption="Parameter error of the three step rules at the last number of loops (geometric mean over trials), the "
    "mean bound, and the loops that each rule's bound asks for at the mean κ to bring the error below 1e-6.",
)
def step_rules(m: Measurements) -> pl.DataFrame:
    n = m.params.compared_examples
    kappa = float(m.final("condition", arm="steps", rule="1/L").array.mean())
    rows = []
    for rule in ("1/L", "2/(L+mu)", "chebyshev"):
        error = m.final("parameter_error", arm="steps", rule=rule).array
        rows.append(
            {
                "steps": rule,
                "n": n,
                "loops": m.params.compared_loops,
                "error": float(np.exp(np.log(np.maximum(error, 1e-18)).mean())),
                "bound": float(m.final("bound", arm="steps", rule=rule).array.mean()),
                "loops for 1e-6": theory.required_loops(kappa, 1e-6, bound=rule),
            }
        )
    theorem = {"steps": "1/L, bound of the theorem", "n": n, "loops": m.params.compared_loops, "error": None}
    theorem["bound"] = theory.error_bound(kappa, m.params.compared_loops, bound="theorem")
    theorem["loops for 1e-6"] = theory.required_loops(kappa, 1e-6, bound="theorem")
    return pl.DataFrame([*rows, theorem], infer_schema_length=None)


@study.table(
    "broken",
    caption="How far the output is from gradient descent when one part of the construction is changed (mean and "
    "largest over trials), and the largest share of a loop's movement that the probe finds off the gradient.",
)
def broken(m: Measurements) -> pl.DataFrame:
    rows = []
    for change in BROKEN:
        apart = m.final("deviation", arm="broken", change=change).array
        residual = m.final("probe_residual", arm="broken", change=change).array
        rows.append(
            {"change": change, "mean": apart.mean(), "largest": apart.max(), "probe residual": float(residual.mean())}
        )
    return pl.DataFrame(rows)


@study.table(
    "trained",
    caption="Trained transformers on fresh prompts (root mean square, geometric mean over seeds): half, the same and "
    "four times the examples of training, and up to four times its loops; beside it the construction with 1/L of each "
    "prompt. The cosine compares the weights with the construction up to scale and shear.",
)
def trained_table(m: Measurements) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for point in TRAINED:
        try:
            cosine = m.final("construction_cosine", arm="trained", **point)
        except NotMeasured:
            continue
        found = m.rows("task_rms", arm="trained", **point)
        for tested, loops in found.select("tested", "step").unique().sort("tested", "step").iter_rows():
            where = {"arm": "trained", "tested": tested, **point}
            values = {
                f"{who} {what}": _geometric(m.at(metric, loops, who=who, **where))
                for metric, what in (("task_rms", "task"), ("parameter_rms", "θ*"))
                for who in ("trained", "construction")
            }
            rows.append(
                {"training": _words(point), "n": tested, "loops": loops, **values, "cos": charts.plus_minus(cosine, 2)}
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _geometric(values: Values) -> float:
    return float(f"{np.exp(np.log(np.maximum(values.array, 1e-12)).mean()):.3g}")
