"""Figures and tables that set the hand-set model, the real model and the source side by side."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, NotMeasured, charts

from .study import Params, study


@study.figure(
    "rows",
    caption="Share answered when the last, the middle or the largest query row scores the tokens: hand-set model, real "
    "model (the source's rule), and the source's Mistral Nemo. In the hand-set model the largest row is the last one.",
    shows=("C5a", "C5b", "C5c"),
)
def rows(m: Measurements[Params]) -> alt.Chart:
    found = [_row_frame(m, "hand-set, two hops", arm="planted", task="two-hop", length=m.params.lengths[0])]
    with suppress(NotMeasured):
        found.append(_row_frame(m, "real model", arm="needles", length=m.params.real_lengths[0]))
    printed = (
        m.paper.filter(where="Figure G.3").select(row="method", mean="value").with_columns(model=pl.lit("source, Nemo"))
    )
    frame = pl.concat([*found, printed], how="diagonal_relaxed")
    order = ["last", "middle", "largest"]
    bars: alt.Chart = (
        alt.Chart(frame, height=240, width=alt.Step(34))
        .mark_bar()
        .encode(
            x=alt.X("model:N", title=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("row:N", sort=order),
            y=alt.Y("mean:Q", title="accuracy", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("row:N", title="row", sort=order),
        )
    )
    return bars


def _row_frame(m: Measurements[Params], name: str, **where: Any) -> pl.DataFrame:
    rows = m.rows("accuracy", **where).filter(pl.col("row").is_not_null())
    return charts.summarise(rows, "row").select("row", "mean").with_columns(model=pl.lit(name))


@study.table(
    "selection",
    caption="What an index set holds: share of the needle's tokens, share of blocks of 16 tokens touched (spread), and "
    "the spread of all of a method's sets together. First lengths, mean over seeds.",
    shows=("C7b", "C7c", "C7d"),
)
def selection(m: Measurements[Params]) -> pl.DataFrame:
    made = []
    places = [("hand-set, two hops", {"arm": "planted", "task": "two-hop", "length": m.params.lengths[0]})]
    if "needles" in m.frame["arm"]:
        places.append(("real model", {"arm": "needles", "length": m.params.real_lengths[0]}))
    for name, where in places:
        for method in ("gemfilter", "snapkv"):
            cells: dict[str, Any] = {"model": name, "method": method}
            for metric in ("needle_recall", "spread", "spread_of_all"):
                try:
                    cells[metric.replace("_", " ")] = charts.plus_minus(m.final(metric, method=method, **where), 2)
                except NotMeasured:
                    cells[metric.replace("_", " ")] = None
            made.append(cells)
    return pl.DataFrame(made, infer_schema_length=None)


@study.table(
    "source",
    caption="The source's LongBench averages (Table 9.1 over 14 tasks, Table G.1 over 6 with the chat template), and "
    "the mean of its printed tasks where it prints them. LongBench is not run here; the loader and metrics are there.",
)
def source(m: Measurements[Params]) -> pl.DataFrame:
    printed = m.paper.filter(pl.col("where").is_in(["Table 9.1", "Table G.1"]))
    tasks = printed.filter(pl.col("task") != "average").group_by("where", "model", "method")
    means = tasks.agg(pl.col("value").mean().round(2).alias("mean of its tasks"))
    averages = printed.filter(task="average").select("where", "model", "method", pl.col("value").alias("paper"))
    return averages.join(means, on=["where", "model", "method"], how="left", maintain_order="left")
