"""The samples that learned features and fixed kernels need on the XOR mixture."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part
from .claims import LEVEL, needed


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
    edge = charts.rules({"10 points below Bayes": LEVEL}, width=270)
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
