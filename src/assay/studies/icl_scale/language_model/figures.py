"""A language model's answers against flipped labels, and its attention to an irrelevant sentence."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part

READINGS = {"auc": "AUC", "balanced_accuracy": "threshold at the median", "accuracy": "raw accuracy"}
LABELS = {"correct": "right", "wrong": "wrong"}


@part.figure(
    "flipped-text",
    caption="A pretrained language model's answers against the share of flipped labels in its prompt (mean and 95 % "
    "interval over draws). Raw accuracy also measures which label the model prefers, whatever the text; the other two "
    "do not.",
    shows=("C6f", "C6g", "C6h", "C6i"),
)
def flipped_text(m: Measurements[Params]) -> Any:
    rows = m.rows(list(READINGS), arm="flipped-text")
    frame = charts.summarise(rows, "data", "metric", "flipped")
    frame = frame.with_columns(reading=pl.col("metric").replace_strict(READINGS))
    shares = frame["flipped"].unique().sort().to_list()
    base = alt.Chart(frame, width=300, height=260).encode(
        x=alt.X("flipped:Q", title="share of flipped labels", axis=alt.Axis(values=shares, format="%")),
        color=alt.Color("reading:N", title=None, sort=list(READINGS.values()), legend=alt.Legend(symbolOpacity=1)),
    )
    lowest = min(0.5, *frame["low"])
    extent = alt.Scale(domain=[max(0, math.floor(10 * lowest) / 10), 1])
    layers = alt.layer(
        base.mark_area(opacity=0.15, clip=True).encode(y=alt.Y("low:Q", scale=extent), y2="high:Q"),
        base.mark_line(point=True).encode(y=alt.Y("mean:Q", title="AUC, or share of right answers", scale=extent)),
    )
    return layers.facet(column=alt.Column("data:N", title=None))


@part.figure(
    "attention-text",
    caption="A pretrained language model's attention to an irrelevant sentence over that to the text itself, token for "
    "token, from a right and from a wrong label at the end of the prompt, in the last layer (points: the mean of the "
    "draws' medians over texts with its 95 % interval, ticks: each draw). Below 1 the text gets more. The source draws "
    "norms over spans of any length, for two sizes of Llama.",
    shows=("C7a", "C7b", "C7e", "C7f"),
)
def attention_by_label(m: Measurements[Params]) -> Any:
    rows = m.rows("attention_ratio", arm="attention-text").with_columns(label=pl.col("label").replace_strict(LABELS))
    base = alt.Chart(charts.summarise(rows, "data", "label"), width=380, height=260).encode(
        x=alt.X("data:N", title=None, sort=list(m.params.text_sets), axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("label:N", sort=list(LABELS.values())),
        color=alt.Color("label:N", title="label", sort=list(LABELS.values()), legend=alt.Legend(symbolOpacity=1)),
    )
    axis = alt.Y("mean:Q", title="attention, irrelevant/relevant sentence", scale=alt.Scale(zero=False, padding=10))
    tips = [
        "data:N",
        "label:N",
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("mean", "low", "high")),
        "seeds:Q",
    ]
    points = alt.layer(
        base.properties(data=rows).mark_tick(size=26, thickness=1, opacity=0.5).encode(y="value:Q"),
        base.mark_rule(strokeWidth=3).encode(y="low:Q", y2="high:Q"),
        base.mark_circle(size=45, opacity=1).encode(y=axis, tooltip=tips),
    )
    return points + charts.rules({"the same for both": 1.0}, width=380)


@part.table(
    "attention-text",
    caption="The last token's attention to an irrelevant sentence over that to the text itself, token for token, in "
    "the last layer: the median over texts, with its interval over draws. At 1 the two get the same.",
    shows=("C7a", "C7b", "C7e", "C7f"),
)
def attention_text(m: Measurements[Params]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"data": data, "label": label}
            | {
                "irrelevant/relevant": charts.plus_minus(
                    m.final("attention_ratio", arm="attention-text", data=data, label=label)
                )
            }
            for data in m.params.text_sets
            for label in ("correct", "wrong")
        ]
    )
