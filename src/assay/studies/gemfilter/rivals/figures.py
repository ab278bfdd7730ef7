"""Chunks beside retrievers: what each keeps of a fact, and what is answered."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part
from .problem import WORDINGS

_NAMES = {"chunks": "chunks", "bm25": "BM25", "encoder": "sentence encoder"}


@part.figure(
    "rivals",
    caption="Share of a hidden fact's tokens kept, and share answered by a real model, first length: filter in chunks, "
    "BM25 and a sentence encoder over windows, at the same budget of tokens, for questions in the fact's own words and "
    "in others. Intervals of 95 % over seeds.",
    shows=("X10a", "X10b", "X10c", "X10d", "X11a", "X11b"),
)
def rivals(m: Measurements[Params]) -> alt.FacetChart:
    words = {"recall": "share of the fact kept", "accuracy": "share answered"}
    rows = m.rows(list(words), arm="rivals", length=m.params.rival_lengths[0])
    frame = charts.summarise(rows, "wording", "method", "metric").with_columns(
        pl.col("low", "high").clip(0, 1), pl.col("metric").replace(words), pl.col("method").replace(_NAMES)
    )
    order = list(_NAMES.values())
    base = alt.Chart().encode(
        x=alt.X("wording:N", title=None, sort=list(WORDINGS), axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("method:N", sort=order),
    )
    bars = base.mark_bar().encode(
        y=alt.Y("mean:Q", title="share", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("method:N", title=None, sort=order),
    )
    spans = base.mark_rule(color="#1c2430").encode(y="low:Q", y2="high:Q")
    made: alt.FacetChart = (
        alt.layer(bars, spans, data=frame)
        .properties(width=230, height=220)
        .facet(column=alt.Column("metric:N", title=None, sort=list(words.values())))
    )
    return made


@part.table(
    "rival-windows",
    caption="Share of the fact kept by each retriever with windows of several sizes, on tuning prompts of both "
    "wordings.",
    shows=("N15", "N16"),
)
def windows(m: Measurements[Params]) -> pl.DataFrame:
    made = []
    for rival in ("bm25", "encoder"):
        cells = {
            f"{size} tokens": charts.plus_minus(
                m.final("tuning_recall", arm="rival-windows", method=rival, window=size), 2
            )
            for size in m.params.rival_windows
        }
        made.append({"retriever": _NAMES[rival], **cells})
    return pl.DataFrame(made)
