"""First-layer weights on two image classes: where they point, and how far they move."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "image-weights",
    caption="First-layer weights of networks trained on two image classes (seed 0, each in its own best plane), from a "
    "standard and from a ten times smaller Gaussian start. The clusters are clear only from the small start.",
    shows=("C8b", "C8c", "C8d"),
)
def image_weights(m: Measurements[Params]) -> alt.HConcatChart:
    parts = []
    for start in ("standard", "small"):
        points = m.array("weight_map", arm="image-weights", start=start)[0]
        frame = pl.DataFrame({"x": points[:, 0], "y": points[:, 1]})
        scale = alt.Scale(domain=[-1.6, 1.6])
        chart = alt.Chart(frame, width=240, height=240, title=f"{start} start").mark_circle(size=50, opacity=0.6)
        parts.append(chart.encode(x=alt.X("x:Q", scale=scale, title=None), y=alt.Y("y:Q", scale=scale, title=None)))
    return alt.hconcat(*parts)


@part.figure(
    "movement",
    caption="How far the first layer moves in each epoch on two image classes, as a share of its initial norm.",
    shows=("C8a",),
)
def movement(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("movement", arm="image-weights").filter(pl.col("step") > 0), "start", "step")
    frame = frame.rename({"step": "epoch"})
    chart: alt.LayerChart = charts.band(frame, x="epoch", y="movement in the epoch", colour="start", scale="log")
    return chart
