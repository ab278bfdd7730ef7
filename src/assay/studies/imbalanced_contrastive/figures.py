"""A picture that several parts draw: something against the frequency of rare features, beside a power of it."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import charts


def against_frequency(rows: pl.DataFrame, title: str, *, exponent: int, factor: float) -> alt.LayerChart:
    """Points (mean and interval over seeds) against ε on logarithmic axes; lines at ε to the power and so many times
    above and below."""
    frame = charts.summarise(rows, "epsilon").filter(pl.col("mean") > 0)
    frame = frame.with_columns(low=pl.max_horizontal("low", 1e-2 * pl.col("mean")))  # an interval may reach below zero
    x = alt.X("epsilon:Q", title="ε of rare features", scale=alt.Scale(type="log", nice=False))
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(type="log"))
    kinds = {"below": 1 / factor, "at": 1.0, "above": factor}
    points = [(e, times * e**exponent, name) for name, times in kinds.items() for e in frame["epsilon"]]
    lines = pl.DataFrame(points, schema=["epsilon", "mean", "line"], orient="row")
    dash = alt.StrokeDash("line:N", legend=None, scale=alt.Scale(domain=list(kinds), range=[[3, 3], [1, 0], [3, 3]]))
    power = alt.Chart(lines).mark_line(color="#777").encode(x=x, y=y, strokeDash=dash)
    base = alt.Chart(frame, width=320, height=240).encode(x=x)
    bars = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q")
    return alt.LayerChart(layer=[power, bars, base.mark_point(filled=True, size=60, opacity=1).encode(y=y)])
