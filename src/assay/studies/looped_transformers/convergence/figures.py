"""Figure 8.1 redrawn from the transformer's own trajectory, the slopes of its curves, and the bounds."""

from __future__ import annotations

import math

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from ..figures import DASHES, LONG, powers_of_ten
from .arms import OTHER_INPUTS, Params, part
from .claims import FLOOR, above_floor, fitted_slopes
from .theory import competing_examples, slope

_ATTAINED = 1e-12  # of squared errors: relative rounding of a falling bound is seen long before the float floor


def _mean_curves(m: Measurements[Params]) -> pl.DataFrame:
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


@part.figure(
    "convergence",
    caption="Figure 8.1 from the transformer's own trajectory: natural log of the mean over trials of the squared "
    "relative parameter error (solid), and of the mean of each trial's bound (dashed). Left: e^{−t/κ}, which matches a "
    "squared error. Right: e^{−t/(2κ)}, the exponent of Theorem 8.16, which is about an error that is not squared. The "
    "flat ends are float64 rounding: there, on the left, the error meets its bound from below, which the source reads "
    "as a narrowing gap.",
    shows=("C6a", "C6g", "C6h"),
)
def convergence(m: Measurements[Params]) -> alt.HConcatChart:
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
                    "kind:N", title=None, sort=["transformer", "bound"], scale=DASHES, legend=LONG
                ),
                tooltip=["curve:N", "kind:N", "step:Q", alt.Tooltip("log:Q", format=".1f")],
            )
        )
    return alt.hconcat(*parts)


@part.figure(
    "slopes",
    caption="Left: the fitted slope of the log squared error of every trial, over the later half of the loops above "
    "the float floor, against 2 ln(1 − 1/κ) of its prompt (line: equal). Right: how much steeper the error falls than "
    "e^{−t/κ}, mean and 95 % interval over trials. In slopes the gap between error and bound widens with n.",
    shows=("C6b", "C6c", "C6d", "C6e", "C6f"),
)
def slopes(m: Measurements[Params]) -> alt.HConcatChart:
    frames = []
    for n in m.params.examples:
        fitted, kappa = fitted_slopes(m, n), m.final("condition", arm="convergence", examples=n)
        frames.append(
            pl.DataFrame(
                {
                    "n": [f"n = {n}"] * len(kappa.by_seed),
                    "seed": sorted(kappa.by_seed),
                    "predicted": [slope(value) for value in kappa.array],
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


@part.figure(
    "bounds",
    caption="Left: the task error against the number of loops, as measured and by the exact formula (they coincide), "
    "with |α| times the distance from θ* of gradient descent run beside it, which bounds it, the sharp bound and the "
    "theorem's, means over trials at the smallest n. Right: the examples that the earlier "
    "bound of Theorem 8.17 asks for before it says anything, beside the n of these runs, where the loop needs no more. "
    "That bound is about a trained model on regression, so the comparison is the source's argument and no proof.",
    shows=("C3", "C4a", "C4b", "C4d", "C5k"),
)
def bounds(m: Measurements[Params]) -> alt.HConcatChart:
    n, most = min(m.params.examples), min(60, m.params.loops)
    kappa = m.final("condition", arm="convergence", examples=n).array
    alpha, rows = abs(m.params.alpha), []
    for metric, name in (("task_error", "measured"), ("exact_error", "exact formula")):
        curve = m.rows(metric, arm="convergence", examples=n).group_by("step", maintain_order=True)
        rows += [(name, t, error) for t, error in curve.agg(pl.col("value").mean()).iter_rows() if t <= most]
    beside = m.rows("descent_squared_error", arm="convergence", examples=n).group_by("step", maintain_order=True)
    distance = beside.agg(alpha * pl.col("value").sqrt().mean())
    rows += [("|α| × distance of descent", t, error) for t, error in distance.iter_rows() if t <= most]
    for t in range(most + 1):
        rows.append(("sharp bound (1 − 1/κ)^T", t, float(np.mean(alpha * (1 - 1 / kappa) ** t))))
        rows.append(("theorem exp(−T/(2κ))", t, float(np.mean(alpha * np.exp(-t / (2 * kappa))))))
    frame = pl.DataFrame(rows, schema=["curve", "loops", "error"], orient="row")
    order = [
        "exact formula",
        "measured",
        "|α| × distance of descent",
        "sharp bound (1 − 1/κ)^T",
        "theorem exp(−T/(2κ))",
    ]
    base = alt.Chart(frame, width=330, height=280, title=f"n = {n}").encode(
        x=alt.X("loops:Q", title="loops T"),
        y=alt.Y("error:Q", title="task error", **powers_of_ten(frame["error"])),
        color=alt.Color("curve:N", title=None, sort=order, legend=alt.Legend(orient="bottom", columns=2)),
    )
    lines = base.transform_filter("datum.curve != 'measured'").mark_line()
    dots = base.transform_filter("datum.curve == 'measured' && datum.loops % 4 == 0").mark_point(filled=True, size=40)
    chart: alt.HConcatChart = alt.hconcat(lines + dots, _examples_needed(m)).resolve_scale(color="independent")
    return chart


def _examples_needed(m: Measurements[Params]) -> alt.LayerChart | alt.FacetChart:
    needed = [(t, math.log10(competing_examples(t, m.params.dim))) for t in range(1, 31)]
    frame = pl.DataFrame(needed, schema=["loops", "examples"], orient="row")
    base = alt.Chart(frame, width=250, height=280, title="examples needed").encode(x=alt.X("loops:Q", title="loops T"))
    line = base.mark_line().encode(y=alt.Y("examples:Q", title="log10 of n", scale=alt.Scale(domainMin=0)))
    used = pl.DataFrame({"value": [math.log10(n) for n in m.params.examples]})
    rule = alt.Chart(used).mark_rule(color="#d55e00", strokeDash=[4, 3]).encode(y="value:Q")
    words = pl.DataFrame({"x": [18.5, 30.0], "y": [30.0, 2.6], "text": ["Theorem 8.17", "n of these runs"]})
    label = alt.Chart(words).mark_text(align="right", baseline="bottom").encode(x="x:Q", y="y:Q", text="text:N")
    return alt.layer(line, rule, label)


@part.figure(
    "other-inputs",
    caption="Distance from θ* over the sharp bound (1 − 1/κ)^T of the same prompt, after every loop. On inputs that "
    "are not Gaussian the largest ratio of all trials is drawn, and it stays below 1, the bound (dashed). Where θ* is "
    "the weakest eigen-direction of XᵀX (Gaussian inputs) the ratio farthest from 1 is drawn, and the bound is "
    "attained: it is 1 at every loop. A trial counts until its error comes near rounding, where a curve may step or "
    "end.",
    shows=("C4c", "C4f"),
)
def other_inputs(m: Measurements[Params]) -> alt.LayerChart:
    names = {name: name for name in OTHER_INPUTS} | {"weakest": "Gaussian, θ* weakest"}
    ratio = pl.col("squared_error").sqrt() / (1 - 1 / pl.col("condition")).pow(pl.col("step"))
    frames = []
    for name, words in names.items():
        rows = above_floor(m, "other-inputs", floor=_ATTAINED if name == "weakest" else FLOOR, inputs=name)
        worst = ratio.get((ratio - 1).abs().arg_max()) if name == "weakest" else ratio.max()
        frames.append(rows.group_by("step", maintain_order=True).agg(ratio=worst).with_columns(inputs=pl.lit(words)))
    lines = alt.Chart(pl.concat(frames), width=440, height=280).mark_line()
    curves = lines.encode(
        x=alt.X("step:Q", title="loops T"),
        y=alt.Y("ratio:Q", title="distance from θ*/bound", scale=alt.Scale(zero=False)),
        color=alt.Color("inputs:N", title=None, sort=list(names.values())),
    )
    return alt.LayerChart(layer=[charts.rules({"bound": 1.0}, width=440), curves])
