"""How fast tickets learn."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import AFTER, AT_START, LEVEL, Params, part


@part.figure(
    "tickets",
    caption="XOR mixture: test hinge loss over the steps after the first, mean over seeds, each network at the rate "
    "that validation inputs chose in its seed. Subsets have 24 neurons; the race is to the dashed loss.",
    shows=("C6a", "C6b", "C6c", "C6d", "C6e", "X6"),
)
def tickets(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("loss", arm="tickets").filter(pl.col("step") > 0)
    frame = charts.summarise(rows, "who", "step").with_columns(
        start=pl.when(pl.col("who").is_in(AT_START)).then(pl.lit("start")).otherwise(pl.lit("step 1"))
    )
    chart: alt.LayerChart = charts.band(
        frame, x="step", y="hinge loss", colour="who", dash="start", scale="log", shaded=False
    ) + charts.rules({f"loss {LEVEL:g}": LEVEL})
    return chart


@part.table(
    "tickets",
    caption="XOR mixture: steps and samples until hinge loss 0.05, the first step counted where it was taken; test "
    "error at the end and the rates chosen.",
    shows=("C6a", "C6b", "C6c", "C6d", "C6e", "C6f", "C6g"),
)
def race_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for who in (*AFTER, *AT_START):
        rates = m.rows("rate", arm="tickets", who=who)["value"].to_list()
        rows.append(
            {
                "network": who,
                "steps": charts.plus_minus(m.final("steps", arm="tickets", who=who), 1),
                "samples": charts.plus_minus(m.final("samples", arm="tickets", who=who), 0),
                "error": charts.plus_minus(m.final("error", arm="tickets", who=who), 4),
                "rates": f"{min(rates):g} to {max(rates):g}",
                "reached": f"{int(m.rows('reached', arm='tickets', who=who)['value'].sum())} of {len(rates)}",
            }
        )
    return pl.DataFrame(rows)
