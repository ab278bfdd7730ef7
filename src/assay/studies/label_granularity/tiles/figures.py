"""The figure of grids of real tiles."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements

from .arms import Params, part

LABELS = {"coarse": "superclass labels", "fine": "subclass labels"}


@part.figure(
    "tiles",
    caption="Grids of real image tiles: errors of a convolutional network in percent, one dot per seed, a tick at the "
    "mean. Easy samples show their superclass' tile, and both labels solve them. Hard samples have the tile of their "
    "subclass alone: training on superclass labels loses them, training on subclass labels does not.",
    shows=("C1c", "C2f", "C2g", "C3i"),
)
def tiles(m: Measurements[Params]) -> alt.LayerChart:
    rows = pl.concat(
        m.rows(f"{kind}_error", arm="tiles").with_columns(samples=pl.lit(f"{kind} samples"))
        for kind in ("easy", "hard")
    )
    frame = rows.with_columns(
        labels=pl.col("labels").replace_strict(LABELS), error=100 * pl.col("value").cast(pl.Float64)
    )
    base = alt.Chart(frame.select("labels", "samples", "seed", "error"), width=360, height=140).encode(
        x=alt.X("error:Q", title="error, %", scale=alt.Scale(domain=[0, 100])),
        y=alt.Y("samples:N", title=None),
        yOffset=alt.YOffset("labels:N", sort=list(LABELS.values())),
        color=alt.Color("labels:N", title=None, sort=list(LABELS.values())),
    )
    said = ["labels:N", "samples:N", "seed:Q", alt.Tooltip("error:Q", format=".1f")]
    dots = base.mark_circle(size=50, opacity=0.7).encode(tooltip=said)
    means = base.mark_tick(thickness=3, size=24).encode(x="mean(error):Q")
    return alt.LayerChart(layer=[dots, means])
