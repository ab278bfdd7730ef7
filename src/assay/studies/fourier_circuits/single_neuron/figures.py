"""The best single neuron: its value beside that of the theory, and how far its shape is from a cosine."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part
from .claims import ROUNDING

_SHAPE = {
    "ratio_low": "|J/γ* − 1| of the worst start",
    "power": "1 − share of one frequency",
    "amplitude_spread": "spread of lengths",
    "phase_residual": "|Σθ_l − θ_w|",
    "shared": "vectors at several frequencies",
}
_SMALLEST = 1e-17  # what is drawn of a zero, which has no logarithm


@part.figure(
    "single-neuron",
    caption="Single neurons optimised from random starts without knowledge of Fourier. Left: the mean margin J that "
    "they reach over the theory's largest, γ*, from the worst to the best start of all seeds (the two coincide), "
    "beside what is expected (grey): 1 at every odd p, and 2^{(k−1)/2} at p = 2, where the theorem does not apply. "
    "Right, at odd p: the largest deviation from γ* and from one cosine, over all starts and seeds, drawn at 1e-17 "
    "where it is zero; 'vectors at several frequencies' is 1 where they are in any start, and 0 where in none. All of "
    "them are rounding, far below what the claims tolerate (dashed).",
    shows=("C1c", "C2a", "C2b", "C2c", "C2i", "N4"),
)
def single_neuron(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows(["ratio_low", "ratio_high", *_SHAPE], arm="single-neuron").with_columns(
        case=pl.format("p = {}, k = {}", "p", "k")
    )
    chart: alt.HConcatChart = alt.hconcat(_values(rows), _deviations(rows), spacing=30).resolve_scale(
        color="independent"
    )
    return chart


def _cases(frame: pl.DataFrame) -> alt.X:
    """The pairs of p and k from left to right, as they were run."""
    return alt.X("case:N", title=None, sort=frame["case"].unique(maintain_order=True).to_list())


def _values(rows: pl.DataFrame) -> alt.LayerChart:
    low = pl.col("value").filter(pl.col("metric") == "ratio_low").min()
    high = pl.col("value").filter(pl.col("metric") == "ratio_high").max()
    frame = rows.group_by("p", "k", "case", maintain_order=True).agg(low=low, high=high)
    at_two = pl.col("p") == 2
    frame = frame.with_columns(
        expected=pl.when(at_two).then(2.0 ** ((pl.col("k") - 1) / 2)).otherwise(1.0),
        modulus=pl.when(at_two).then(pl.lit("p = 2")).otherwise(pl.lit("odd p")),
    )
    base = alt.Chart(frame, width=330, height=250).encode(x=_cases(frame))
    ticks = base.mark_tick(thickness=3, width=26, color="#bbb").encode(
        y=alt.Y("expected:Q", title="mean margin reached/γ*", scale=alt.Scale(domainMin=0))
    )
    hue = alt.Color("modulus:N", title=None, sort=["odd p", "p = 2"], legend=alt.Legend(orient="top"))
    span = base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q", color=hue)
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(
        y="low:Q", color=hue, tooltip=["case:N", alt.Tooltip("low:Q", format=".12f"), alt.Tooltip("high:Q")]
    )
    return alt.LayerChart(layer=[ticks, span, dots])


def _deviations(rows: pl.DataFrame) -> alt.LayerChart:
    apart = pl.when(pl.col("metric").is_in(["ratio_low", "power", "shared"])).then((pl.col("value") - 1).abs())
    shape = rows.filter((pl.col("p") > 2) & pl.col("metric").is_in(list(_SHAPE)))
    shape = shape.with_columns(value=apart.otherwise("value"), what=pl.col("metric").replace_strict(_SHAPE))
    frame = shape.group_by("what", "case", maintain_order=True).agg(pl.col("value").max().clip(_SMALLEST))
    top = max(-6, math.ceil(math.log10(frame["value"].to_numpy().max())))
    ticks = [10.0**power for power in range(-17, top + 1)]
    scale = alt.Scale(type="log", domain=[ticks[0], ticks[-1]])
    words = list(_SHAPE.values())
    dots = alt.Chart(frame, width=330, height=250).mark_point(filled=True, size=55, opacity=1)
    dots = dots.encode(
        x=_cases(frame),
        xOffset=alt.XOffset("what:N", sort=words),
        y=alt.Y("value:Q", title="largest deviation", scale=scale, axis=alt.Axis(values=ticks, format=".0e")),
        color=alt.Color("what:N", title=None, sort=words, legend=alt.Legend(orient="top", columns=2)),
    )
    tolerated = {"tolerated for margin and frequency": ROUNDING, "tolerated for lengths and phases": 1e-7}
    return alt.LayerChart(layer=[charts.rules(tolerated, width=330), dots])
