"""Mixtures of Gaussians: neurons by feature, and training curves."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from .arms import KINDS, Params, part


@part.figure(
    "neurons-by-feature",
    caption="Cosine of neurons with the means after one sampled step (one seed; neurons sorted by their nearest mean). "
    "Four XOR axes have four features, eight orthogonal means have eight.",
    shows=("C4r", "N10", "C4s"),
)
def neurons_by_feature(m: Measurements[Params]) -> alt.VConcatChart:
    panels = []
    for kind in KINDS:
        found = np.abs(m.array("cosines", arm="mixture-training", kind=kind)[0])
        half = len(found) // 2
        rows = []
        for sign, part_of in (("positive", found[:half]), ("negative", found[half:])):
            order = np.lexsort((-part_of.max(1), part_of.argmax(1)))
            rows += [
                {"threshold": sign, "neuron": at, "feature": j + 1, "cosine": float(part_of[i, j])}
                for at, i in enumerate(order.tolist())
                for j in range(found.shape[1])
            ]
        panels.append(
            alt.Chart(pl.DataFrame(rows), width=260, height=14 * found.shape[1], title=kind)
            .mark_rect()
            .encode(
                x=alt.X("neuron:O", title="neurons", axis=alt.Axis(labels=False, ticks=False)),
                y=alt.Y("feature:O", title="feature"),
                color=alt.Color("cosine:Q", title="|cosine|", scale=alt.Scale(scheme="viridis", domain=[0, 1])),
                column=alt.Column("threshold:N", title=None, sort=["positive", "negative"]),
            )
        )
    return alt.vconcat(*panels)


@part.figure(
    "mixture-training",
    caption="Mixtures of eight Gaussians: test error over the steps after the first when both layers are trained.",
    shows=("C3a",),
)
def training(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("error", arm="mixture-training", layers="both"), "kind", "step")
    chart: alt.LayerChart = charts.band(frame, x="step", y="test error", colour="kind")
    return chart
