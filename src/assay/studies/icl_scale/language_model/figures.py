"""A language model's answers against flipped labels."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part

READINGS = {"auc": "AUC", "balanced_accuracy": "threshold at the median", "accuracy": "raw accuracy"}


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
    base = alt.Chart(frame, width=300, height=260).encode(
        x=alt.X("flipped:Q", title="share of flipped labels", axis=alt.Axis(format="%")),
        color=alt.Color("reading:N", title=None, sort=list(READINGS.values()), legend=alt.Legend(symbolOpacity=1)),
    )
    extent = alt.Scale(domain=[0.3, 1])
    layers = alt.layer(
        base.mark_area(opacity=0.15, clip=True).encode(y=alt.Y("low:Q", scale=extent), y2="high:Q"),
        base.mark_line(point=True).encode(y=alt.Y("mean:Q", title="right answers", scale=extent)),
    )
    return layers.facet(column=alt.Column("data:N", title=None))


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
