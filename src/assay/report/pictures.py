"""A chart as a picture of its own, in the theme of the reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SUFFIXES = (".html", ".svg", ".png", ".pdf")


def save(chart: Any, path: Path) -> None:
    """Write a chart as .html, .svg, .png or .pdf. A page has its scripts inside: it needs no network."""
    import altair as alt

    from . import theme

    made = alt.Chart.from_dict(theme.spec(chart))
    options: dict[str, Any] = {"inline": True} if path.suffix == ".html" else {}
    made.save(str(path), **options)


def needle_map(rows: Iterable[Mapping[str, Any]]) -> Any:
    """The share of right answers over prompt length and depth, a panel per method."""
    import altair as alt
    import polars as pl

    frame = pl.DataFrame([{key: row[key] for key in ("method", "length", "depth", "right")} for row in rows])
    shares = frame.group_by("method", "length", "depth", maintain_order=True).agg(pl.col("right").mean())
    return (
        alt.Chart(shares)
        .mark_rect()
        .encode(
            x=alt.X("length:O", title="prompt length in tokens"),
            y=alt.Y("depth:O", title="depth of the needle", axis=alt.Axis(format=".0%")),
            color=alt.Color("right:Q", title="right", scale=alt.Scale(scheme="blues", domain=[0, 1])),
            column=alt.Column("method:N", title=None),
        )
    )
