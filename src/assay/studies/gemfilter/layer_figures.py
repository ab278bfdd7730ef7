"""Recall per layer with its three stages: for the study, and for `assay needle --layers` on any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from assay.lab import charts
from assay.methods.gemfilter.layers import STAGES, LayerScan, stages_of

_PALE = alt.Scale(domain=STAGES, range=["#e6e6e6", "#cfe8d5", "#f7e3c8"])
_STRONG = alt.Scale(domain=STAGES, range=["#c4c8cc", "#7fc49a", "#f0bd7d"])


# Where the stages stand when intervals fill the panel: a strip under the curves.
_STRIP = (-0.12, -0.04)


def stage_bands(stage: Sequence[str], *, strip: bool = False) -> alt.Chart:
    """A band per layer, from half a layer before to half a layer after; as a background, or as a strip under 0."""
    bands = pl.DataFrame(
        {"start": [i - 0.5 for i in range(len(stage))], "end": [i + 0.5 for i in range(len(stage))], "stage": stage}
    )
    low, high = _STRIP
    shares = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    height = {"y": alt.YDatum(low, type="quantitative", axis=shares), "y2": alt.datum(high)} if strip else {}
    return (
        alt.Chart(bands)
        .mark_rect()
        .encode(
            x=alt.X("start:Q", scale=alt.Scale(domain=[-0.5, len(stage) - 0.5], nice=False)),
            x2="end:Q",
            color=alt.Color("stage:N", title="stage", scale=_STRONG if strip else _PALE, sort=STAGES),
            **height,
        )
    )


def recall_panel(rows: pl.DataFrame, rule: str, title: str) -> Any:
    """Curves per rule over (rule, layer, seed, value), with the stages by one rule under them. A share lies between 0
    and 1, and its interval is drawn to there."""
    frame = charts.summarise(rows, "layer", "rule").with_columns(pl.col("low", "high").clip(0, 1))
    means = frame.filter(rule=rule).sort("layer")["mean"].to_list()
    curves = charts.band(frame, x="layer", y="needle recall", colour="rule", domain=(-0.15, 1), height=240)
    chart = alt.layer(stage_bands(stages_of(means), strip=True), curves).resolve_scale(color="independent")
    return chart.properties(width=330, height=240, title=title)


def scans_chart(scans: Mapping[int, LayerScan], keep: Mapping[int, int]) -> Any:
    """A panel per prompt length, with the stages by the rule that finds the needles in most layers; intervals are over
    prompts."""
    parts = []
    for length, scan in scans.items():
        rows = [
            (rule, layer, number, value)
            for rule in scan.rules
            for layer, values in enumerate(scan.of(rule).tolist())
            for number, value in enumerate(values)
        ]
        frame = pl.DataFrame(rows, schema=["rule", "layer", "seed", "value"], orient="row")
        rule = scan.best_rule()
        parts.append(recall_panel(frame, rule, f"n = {length}, k = {keep[length]}; stages by the rule {rule}"))
    return alt.hconcat(*parts)
