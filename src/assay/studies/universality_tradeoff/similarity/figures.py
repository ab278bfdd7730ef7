"""Heat map of CKA in the linear model."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import LARGEST, Params, part


def heat_map(frame: pl.DataFrame, order: list[str], title: str, *, value: str = "value") -> Any:
    """Cells of ``row`` against ``column`` with their numbers."""
    base = alt.Chart(frame, width=46 * len(order), height=46 * len(order), title=title).encode(
        x=alt.X("column:N", sort=order, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("row:N", sort=order, title=None),
    )
    colour = alt.Color(f"{value}:Q", title="CKA", scale=alt.Scale(domain=[0, 1], scheme="viridis", clamp=True))
    light = alt.condition(f"datum.{value} > 0.6", alt.value("black"), alt.value("white"))
    words = base.mark_text(fontSize=11).encode(text=alt.Text(f"{value}:Q", format=".2f"), color=light)
    return alt.layer(base.mark_rect().encode(color=colour), words)


@part.figure(
    "linear-cka",
    caption="Linear CKA on the target's data between optimal encoders of mixtures of one to four linear tasks: "
    "measured (left, mean over seeds) and by the closed form (right). Along each row it falls away from the diagonal.",
    shows=("C7a", "C7b"),
)
def linear(m: Measurements[Params]) -> Any:
    order = [f"{t} tasks" for t in range(1, LARGEST + 1)]
    maps = []
    for metric, title in (("cka", "measured"), ("predicted", "closed form")):
        rows = m.rows(metric, arm="linear-cka", row=order, column=order)
        maps.append(heat_map(rows.group_by("row", "column").agg(pl.col("value").mean()), order, title))
    return alt.hconcat(*maps)


@part.table(
    "single-tasks",
    caption="Linear CKA on the target's data between optimal encoders of single linear tasks, each turned by a random "
    "rotation of its own, beside the closed form: two encoders of other tasks see shared features only, and are alike "
    "but for rounding. Last row: the difference between two ways to compute CKA, by products of features and by Gram "
    "matrices of samples. From the least to the largest seed.",
    shows=("C7c", "C7d"),
)
def single_tasks(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for claim, row, column in (("", "target", "another task"), ("C7c", "another task", "a third task")):
        where = {"arm": "linear-cka", "row": row, "column": column}
        predicted = f"{m.exact('predicted', **where).value:.4g}"
        rows.append((claim, f"CKA of {row} and {column}", m.every("cka", **where), predicted))
    forms = m.every("form_difference", arm="linear-cka")
    return charts.by_claim([*rows, ("C7d", "|CKA by features − by Gram matrices|", forms, "0")])
