"""Learned and fixed features on the XOR mixture, over dimension and over samples."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..problem import xor_bayes_accuracy
from .arms import FOURIER_WIDTHS, METHODS, THRESHOLDS, Params, part
from .claims import near_bayes_level, needed


@part.figure(
    "xor",
    caption="XOR mixture with noise √d/2.83: test accuracy of heads on gradient features and on fixed ones.",
    shows=("C5a", "C5s", "C5t", "C5b", "C5c", "C5d", "C5v", "C5e"),
)
def xor(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("test_accuracy", arm="xor"), "dim", "method")
    bayes = xor_bayes_accuracy(400, 20 / m.params.hard_ratio)  # depends on √d/σ alone
    chart: alt.LayerChart = charts.band(
        frame, x="dim", x_title="dimension d", y="test accuracy", colour="method"
    ) + charts.rules({"Bayes": bayes})
    return chart


@part.figure(
    "xor-kernels",
    caption="XOR mixture, 100 dimensions and noise 3: exact kernels, tuned, beside a head on gradient features "
    "and training of both layers, over the samples.",
    shows=("C5f", "C3k", "X2"),
)
def xor_kernels(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("test_accuracy", arm="xor-kernels"), "samples", "method")
    chart: alt.LayerChart = charts.band(frame, x="samples", y="test accuracy", colour="method", shaded=False)
    return chart


@part.figure(
    "xor-needs",
    caption="XOR mixture with noise √d/2.83. Left: test accuracy over n/d², by method and dimension (mean over seeds; "
    "dashed: 10 points below Bayes). Right: the samples with which each method first comes that near (mean and 95 % "
    "interval of log n over seeds), on logarithmic axes, beside lines of slope 1.5 and 2 through the first point of "
    "gradient features.",
    shows=("C5y", "C5z", "X29", "X30", "X31"),
)
def xor_needs(m: Measurements[Params]) -> alt.HConcatChart:
    dims = m.params.need_dims
    arms = {"gradient features": {"arm": "xor-needs", "method": "gradient"}}
    arms["quadratic kernel"] = {"arm": "xor-needs", "method": "quadratic"}
    if "xor-needs-ntk" in m.frame["arm"]:
        arms["tangent kernel"] = {"arm": "xor-needs-ntk"}
    curves, counts = [], []
    for words, where in arms.items():
        rows = m.rows("test_accuracy", **where).with_columns(
            ratio=pl.col("samples").cast(pl.Float64) / pl.col("dim").cast(pl.Float64).pow(2),
            d=pl.format("d = {}", "dim"),
            which=pl.lit(words),
        )
        curves.append(rows.select("seed", "which", "d", "ratio", "value"))
        counts += [
            {"which": words, "dim": dim, "seed": seed, "value": math.log(found)}
            for dim in dims
            for seed, found in needed(m, dim, **where).by_seed.items()
            if math.isfinite(found)
        ]
    left = charts.band(
        charts.summarise(pl.concat(curves), "which", "d", "ratio"),
        x="ratio",
        x_title="n/d²",
        y="test accuracy",
        colour="which",
        dash="d",
        width=270,
        shaded=False,
    ).encode(x=alt.X("ratio:Q", scale=alt.Scale(type="log", nice=False), title="n/d²"))
    edge = charts.rules({"10 points below Bayes": near_bayes_level(m.params)}, width=270)
    if not counts:
        return alt.hconcat(alt.layer(left, edge))
    found = charts.summarise(pl.DataFrame(counts), "which", "dim").with_columns(pl.col("mean", "low", "high").exp())
    start = found.filter(which="gradient features").sort("dim")
    lines = pl.DataFrame(
        [
            {"dim": dim, "mean": start["mean"][0] * (dim / start["dim"][0]) ** power, "slope": f"slope {power:g}"}
            for power in (1.5, 2.0)
            for dim in dims
            if len(start)
        ],
        schema={"dim": pl.Int64, "mean": pl.Float64, "slope": pl.String},
    )
    x = alt.X("dim:Q", title="dimension d", scale=alt.Scale(type="log", domain=[dims[0] * 0.9, dims[-1] * 1.1]))
    log = alt.Scale(type="log", nice=False)
    base = alt.Chart(found, width=270, height=260).encode(x=x, color=alt.Color("which:N", title=None, sort=list(arms)))
    points = base.mark_point(filled=True, size=50, opacity=1).encode(y=alt.Y("mean:Q", title="samples n", scale=log))
    bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=log), y2="high:Q")
    guides = (
        alt.Chart(lines)
        .mark_line(color="grey")
        .encode(x=x, y=alt.Y("mean:Q", scale=log), strokeDash=alt.StrokeDash("slope:N", title=None))
    )
    return alt.hconcat(alt.layer(left, edge), guides + bars + points)


@part.table(
    "xor-counts",
    caption="XOR mixture with noise √d/2.83: accuracy by the number of features, at the dimensions at which d² random "
    "ones were tried.",
    shows=("C5t", "C5w", "C5x"),
)
def xor_counts(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for dim in sorted({*m.params.wide_dims} & {*m.params.hard_dims}):
        counts = {"gradient": 4 * m.params.step_neurons, "relu 2d": 2 * dim, "relu d^1.5": int(dim**1.5)}
        found = {name: m.final("test_accuracy", arm="xor", dim=dim, method=name) for name in counts}
        found["relu d^2"] = m.final("test_accuracy", arm="xor-wide", dim=dim)
        counts["relu d^2"] = dim**2
        for name, accuracy in found.items():
            cells = {"d": dim, "features": name, "number": counts[name]}
            rows.append(cells | {"accuracy": charts.plus_minus(accuracy)})
    return pl.DataFrame(rows)


@part.table(
    "xor-noise",
    caption="XOR mixture at the largest dimension: accuracy with noise in proportion to √d and with noise 1.",
    shows=("C5b", "N3"),
)
def xor_noise(m: Measurements[Params]) -> pl.DataFrame:
    dim = m.params.hard_dims[-1]
    rows = []
    for method in METHODS:
        hard = m.final("test_accuracy", arm="xor", dim=dim, method=method)
        mild = m.final("test_accuracy", arm="xor-mild", method=method)
        rows.append({"method": method, "noise √d/2.83": charts.plus_minus(hard), "noise 1": charts.plus_minus(mild)})
    return pl.DataFrame(rows)


@part.table(
    "xor-tuning",
    caption="How the threshold of random ReLU features and the width of random Fourier features (in norms of a typical "
    "input) were tuned: validation accuracy of every candidate on the XOR mixture at the smallest dimension, on seeds "
    "kept for tuning (mean and half of the 95 % interval).",
    shows=("N4", "N19"),
)
def tuning(m: Measurements[Params]) -> pl.DataFrame:
    p = m.params
    tried: list[tuple[str, str, tuple[float, ...], float]] = [
        ("ReLU threshold", "xor-tuning", THRESHOLDS, p.random_threshold),
        ("Fourier width", "xor-fourier-tuning", FOURIER_WIDTHS, p.fourier_width),
    ]
    rows = []
    for name, arm, grid, taken in tried:
        for candidate in grid:
            accuracy = charts.plus_minus(m.final("validation_accuracy", arm=arm, candidate=candidate))
            choice = "chosen" if candidate == taken else ""
            rows.append({"features": name, "candidate": candidate, "accuracy": accuracy, "choice": choice})
    return pl.DataFrame(rows)
