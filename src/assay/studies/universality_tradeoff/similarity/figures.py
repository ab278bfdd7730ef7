"""Heat map of CKA in the linear model."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements

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
    charts = []
    for metric, title in (("cka", "measured"), ("predicted", "closed form")):
        rows = m.rows(metric, arm="linear-cka", row=order, column=order)
        charts.append(heat_map(rows.group_by("row", "column").agg(pl.col("value").mean()), order, title))
    return alt.hconcat(*charts)
