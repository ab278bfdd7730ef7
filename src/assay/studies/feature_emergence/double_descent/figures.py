"""Test loss over width."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "double-descent",
    caption="Test loss over width: networks on images, and on Gaussian inputs labelled by teachers of several sizes.",
    shows=("C8j", "C8k", "C8l"),
)
def double_descent(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("test_loss", arm="double-descent").with_columns(labels=pl.col("labelled_by"))
    frame = charts.summarise(rows, "labels", "width")
    chart: alt.LayerChart = charts.band(frame, x="width", y="test loss", colour="labels", scale="log")
    return chart.encode(x=alt.X("width:Q", scale=alt.Scale(type="log")))
