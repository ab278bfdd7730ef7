"""Figures of hard samples: the number of subclasses across k*, and strong noise."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part
from .theory import strong_noise_scales


@part.figure(
    "sweep",
    caption="Error of the coarse network after training, against the number of subclasses k (mean and interval over "
    "seeds). Above k* = s*/(s†ᾱ†), where faint distractors outweigh the subclass features, hard samples are lost.",
    shows=("C2d", "C2i", "N1"),
)
def sweep(m: Measurements[Params]) -> alt.LayerChart:
    words = {"easy_error": "easy samples", "hard_error": "hard samples"}
    rows = m.rows(list(words), arm="sweep").with_columns(samples=pl.col("metric").replace_strict(words))
    frame = charts.summarise(rows, "samples", "k")
    scale, ticks = alt.Scale(type="log", nice=False), alt.Axis(values=list(m.params.sweep))
    base = alt.Chart(frame, width=420, height=270).encode(
        x=alt.X("k:Q", title="subclasses k", scale=scale, axis=ticks), color=alt.Color("samples:N", title=None)
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        y=alt.Y("low:Q", title="error", scale=alt.Scale(domain=[0, 1], clamp=True)), y2="high:Q"
    )
    line = base.mark_line(point=True).encode(y="mean:Q")
    critical = m.params.sweep_critical
    mark = alt.Chart(pl.DataFrame({"k": [critical], "y": [1.0], "text": [f"k* = {critical:.3g}"]}))
    rule = mark.mark_rule(strokeDash=[4, 3], color="#777").encode(x="k:Q")
    word = mark.mark_text(align="right", dx=-4, baseline="top", color="#555").encode(x="k:Q", y="y:Q", text="text:N")
    return alt.LayerChart(layer=[bars, line, rule, word])


@part.figure(
    "strong-noise",
    caption="The second distractor: hard samples whose only disturbance is one patch of noise of deviation σ_ζ*. The "
    "coarse network begins to err near s*/k, the fine one near s*/√(2 log 2k) (dashed).",
    shows=("C2e",),
)
def strong_noise(m: Measurements[Params]) -> alt.LayerChart:
    words = {"coarse": "coarse labels", "fine": "fine labels"}
    rows = m.rows("hard_error", arm="strong-noise").with_columns(network=pl.col("labels").replace_strict(words))
    frame = charts.summarise(rows, "network", "strong")
    base = alt.Chart(frame, width=400, height=250).encode(
        x=alt.X("strong:Q", title="σ of the strong noise", scale=alt.Scale(type="log", nice=False)),
        color=alt.Color("network:N", title=None),
    )
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title="error on hard samples"))
    scales = strong_noise_scales(m.params.subclasses, m.params.feature_patches)
    marks = alt.Chart(pl.DataFrame({"strong": list(scales)}))
    rules = marks.mark_rule(strokeDash=[3, 3], color="#777").encode(x="strong:Q")
    return alt.LayerChart(layer=[line, rules])
