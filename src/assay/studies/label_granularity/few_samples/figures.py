"""The figure of transfer to classes that pretraining never saw."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "cross",
    caption="Accuracy on four classes that pretraining never saw, against the granularity of the labels of six others "
    "(2 and 3: groups of classes; 6: the classes; 12 and 24: clusters of each class). Finetuning and linear probe.",
    shows=("C10a", "C10b", "C10c", "C10d", "C10e"),
)
def cross(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("accuracy", arm="cross"), "readout", "grain")
    frame = frame.with_columns([(100 * pl.col(c)).alias(c) for c in ("mean", "low", "high")])
    base = alt.Chart(frame, width=400, height=270).encode(
        x=alt.X("grain:Q", title="classes in pretraining", scale=alt.Scale(type="log", base=2)),
        color=alt.Color("readout:N", title=None),
    )
    y = alt.Y("low:Q", title="accuracy, %", scale=alt.Scale(zero=False))
    bands = base.mark_area(opacity=0.18).encode(y=y, y2="high:Q")
    return alt.LayerChart(layer=[bands, base.mark_line(point=True).encode(y="mean:Q")])
