"""The shortcut: the answers from one example are right, and they are no estimates of θ*."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..params import Prompts
from .arms import part

_WORDS = {"task_error": "error of the answer", "parameter_error": "distance from θ*"}


@part.figure(
    "shortcut",
    caption="Answers αx/y from one example of the prompt, a dot per trial with the mean and its 95 % interval in "
    "black. Above: the error of the answer, |⟨q, θ*⟩ − α|/|α|, which is zero up to rounding in every trial. Below: the "
    "distance of q/α from θ*, whose length is 1; on average it is more than 0.5 (dashed). The task is solved with no "
    "estimate of θ*.",
    shows=("C7b",),
)
def shortcut(m: Measurements[Prompts]) -> alt.LayerChart:
    rows = m.rows(list(_WORDS), arm="shortcut").with_columns(what=pl.col("metric").replace_strict(_WORDS))
    order = list(_WORDS.values())
    y = alt.Y("what:N", title=None, sort=order, axis=alt.Axis(labelLimit=200))
    x = alt.X("value:Q", title="relative to |α| and to the length of θ*", scale=alt.Scale(domainMin=0))
    dots = alt.Chart(rows.select("what", "value", "seed"), width=420, height=alt.Step(60)).mark_tick(
        size=26, thickness=2, opacity=0.6
    )
    means = alt.Chart(charts.summarise(rows, "what")).encode(y=y)
    bars = means.mark_rule(strokeWidth=3, color="black").encode(x="low:Q", x2="high:Q")
    middle = means.mark_point(filled=True, size=70, color="black", opacity=1).encode(x="mean:Q")
    far = alt.Chart(pl.DataFrame({"value": [0.5]})).mark_rule(strokeDash=[3, 3], color="#777").encode(x="value:Q")
    return alt.LayerChart(
        layer=[far, dots.encode(x=x, y=y, color=alt.Color("what:N", legend=None, sort=order)), bars, middle]
    )
