"""Students' agreement with their teacher over training."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "injected-inputs",
    caption="Students of a labelling teacher: agreement with it on the images, on the Gaussian inputs that "
    "replace half of them, on the mixture, and on images when nothing was replaced.",
    shows=("C8e", "C8f", "C8g", "C8r"),
)
def injected_inputs(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows("part_accuracy", arm="injected-inputs", fraction=[0.0, 0.5]).with_columns(
        curve=pl.when(pl.col("fraction") == 0)
        .then(pl.lit("original only"))
        .otherwise(pl.col("part").replace({"original": "original part", "injected": "injected part"}))
    )
    frame = charts.summarise(rows, "width", "curve", "step")
    parts = []
    for (width,), group in frame.group_by("width", maintain_order=True):
        title = f"student FC({width})"
        parts.append(charts.band(group, x="step", y="agreement with teacher", colour="curve", title=title, width=280))
    return alt.hconcat(*parts)
