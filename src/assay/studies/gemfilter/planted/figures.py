"""The three stages of the hand-set model, and what is answered from planted needles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts
from assay.methods.gemfilter.layers import STAGES, stages_of

from .arms import APART, Params, part
from .problem import TASKS
from .theory import FOUND, LAYERS

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
    chart: alt.Chart = (
        alt.Chart(bands)
        .mark_rect()
        .encode(
            x=alt.X("start:Q", scale=alt.Scale(domain=[-0.5, len(stage) - 0.5], nice=False)),
            x2="end:Q",
            color=alt.Color("stage:N", title="stage", scale=_STRONG if strip else _PALE, sort=STAGES),
            **height,
        )
    )
    return chart


@part.figure(
    "planted-layers",
    caption="The hand-set model on planted needles (first length): share of prompts whose value is kept, and share "
    "answered, against the filter layer. Shaded: the three stages. Values at depth 1 stand among the recent tokens, "
    "which every layer keeps: that is the floor of 0.2.",
    shows=("C1a", "C4a", "C4d"),
)
def planted_layers(m: Measurements[Params]) -> alt.HConcatChart:
    parts = []
    for task, hops in TASKS.items():
        rows = m.rows(["coverage", "accuracy"], arm="planted", task=task, length=m.params.lengths[0])
        frame = charts.summarise(rows.filter(pl.col("layer").is_not_null()), "layer", "metric")
        back = stage_bands(stages_of([float(layer in FOUND[hops]) for layer in range(LAYERS)]))
        lines = (
            alt.Chart(frame)
            .mark_line(point=True)
            .encode(
                x=alt.X("layer:Q", title="filter layer", axis=alt.Axis(values=list(range(LAYERS)), format="d")),
                y=alt.Y("mean:Q", title="share of prompts", scale=alt.Scale(domain=[0, 1])),
                color=alt.Color("metric:N", title=None, sort=["coverage", "accuracy"]),
                strokeDash=alt.StrokeDash("metric:N", sort=["coverage", "accuracy"], legend=None),
            )
        )
        parts.append(
            alt.layer(back, lines).properties(width=280, height=230, title=task).resolve_scale(color="independent")
        )
    return alt.hconcat(*parts)


@part.table(
    "planted",
    caption="Hand-set model: share of planted prompts whose two-token value is answered, at k = n/8, mean over seeds. "
    "SnapKV and H2O drop, layer by layer, what only the second token needs.",
    shows=("C2a", "C2c", "C6a", "N3", "N4", "N5"),
)
def planted_table(m: Measurements[Params]) -> pl.DataFrame:
    made = []
    for method in ("full", "snapkv", "h2o", "one-run", "gemfilter", "random", "listing", "absent"):
        cells: dict[str, Any] = {"method": method}
        for task in TASKS:
            for length in m.params.lengths:
                values = m.final("accuracy", arm="planted", task=task, length=length, method=method, depth=None)
                cells[f"{task}, n = {length}"] = round(float(values.array.mean()), 3)
        made.append(cells)
    return pl.DataFrame(made)


@part.figure(
    "planted-chunks",
    caption="The hand-set model on planted needles of the first length, read whole and in chunks of 128 tokens: share "
    "of prompts answered, with 95 % intervals over seeds. Facts of two hops are found when they stand side by side; "
    "far apart, only those among the recent tokens (depth 1) are left.",
    shows=("X1a", "X1b", "X2"),
)
def planted_chunks(m: Measurements[Params]) -> alt.LayerChart | alt.FacetChart:
    rows = m.rows("accuracy", arm="planted-chunks", length=m.params.cut_lengths[0])
    frame = charts.summarise(rows, "task", "method").with_columns(pl.col("low", "high").clip(0, 1))
    base = alt.Chart(frame, height=220, width=alt.Step(40)).encode(
        x=alt.X("task:N", title=None, sort=list(APART), axis=alt.Axis(labelAngle=0, labelLimit=200)),
        xOffset=alt.XOffset("method:N", sort=["whole", "chunks"]),
    )
    bars = base.mark_bar().encode(
        y=alt.Y("mean:Q", title="share answered", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("method:N", title=None, sort=["whole", "chunks"]),
    )
    return alt.layer(bars, base.mark_rule(color="#1c2430").encode(y="low:Q", y2="high:Q"))
