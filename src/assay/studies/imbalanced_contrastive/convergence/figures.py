"""Rare features when training goes on."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "coefficients",
    caption="Rare over frequent coefficients while training goes on, from random weights without pruning; dotted: ε. "
    "By the printed scaling every curve should reach its dotted line and stay: look whether it is passed through.",
    shows=("C3h",),
)
def coefficients(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("energy_ratio", arm="longer").with_columns(
        frequency=pl.col("epsilon").map_elements(lambda e: f"ε = {e:g}", return_dtype=pl.String)
    )
    frame = charts.summarise(rows.sort("epsilon", "step"), "frequency", "step")
    levels = rows.select("frequency", value=pl.col("epsilon")).unique().sort("value")
    rule = alt.Chart(levels).mark_rule(strokeDash=[2, 3]).encode(y="value:Q", color=alt.Color("frequency:N", sort=None))
    curves: alt.LayerChart = charts.band(frame, x="step", y="rare/frequent coefficient", colour="frequency", width=480)
    figure: alt.LayerChart = curves + rule
    return figure
