"""The order of learning as curves."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import WEIGHTS, Params, part


@part.figure(
    "order",
    caption="XOR axes of unequal and of equal weight: error on inputs of each axis over the steps after the first, "
    "mean over seeds. With unequal weights the two heavy axes come first; with equal ones all come together.",
    shows=("C7a", "C7b", "N8"),
)
def order(m: Measurements[Params]) -> alt.HConcatChart:
    panels = []
    for name, weights in WEIGHTS.items():
        rows = m.rows("axis_error", arm="order", weights=name)
        names = {j + 1: f"axis {j + 1}" for j in range(4)}
        frame = charts.summarise(
            rows.with_columns(which=pl.col("axis").cast(pl.Int64).replace_strict(names)), "which", "step"
        )
        title = f"{name} weights {', '.join(f'{w:g}' for w in weights)}"
        panel = charts.band(
            frame, x="step", y="error", colour="which", width=270, title=title, domain=(0, 1), shaded=False
        )
        panels.append(panel.encode(x=alt.X("step:Q", scale=alt.Scale(type="log"), title="step")))
    return alt.hconcat(*panels)


@part.figure(
    "oracles",
    caption="Correlation of the network with the oracle of all four axes minus that with the oracle of the first two, "
    "over the steps, of the outputs as they are and (dashed) clipped at the margin, beyond which the hinge loss sees "
    "no difference.",
    shows=("C7c", "C7d", "C7e", "N9", "X10"),
)
def oracles(m: Measurements[Params]) -> alt.LayerChart:
    names = {"larger_oracle_lead": "outputs", "clipped_lead": "clipped outputs"}
    rows = m.rows(list(names), arm="order").with_columns(outputs=pl.col("metric").replace_strict(names))
    frame = charts.summarise(rows, "weights", "outputs", "step")
    chart: alt.LayerChart = charts.band(
        frame, x="step", y="correlation, full − smaller oracle", colour="weights", dash="outputs"
    ) + charts.rules({"equally near": 0.0})
    return chart
