"""Parts that studies' figures share: summaries over seeds and curves with their intervals."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from .intervals import student
from .values import Values
from .verdicts import CONFIDENCE


def summarise(frame: pl.DataFrame, *by: str, value: str = "value") -> pl.DataFrame:
    """Mean and 95 % Student interval over seeds per group; one seed has no interval. Aggregate before plotting."""
    groups = frame.group_by(by, maintain_order=True).agg(
        mean=pl.col(value).mean(), deviation=pl.col(value).std(), seeds=pl.col("seed").n_unique(), rows=pl.len()
    )
    if (groups["rows"] != groups["seeds"]).any():
        raise ValueError(f"several rows per seed within groups of {', '.join(by)}: name what tells them apart")
    quantile = [student(n, CONFIDENCE) if n > 1 else 0.0 for n in groups["seeds"]]
    half = pl.Series(quantile) * groups["deviation"].fill_null(0.0) / groups["seeds"].sqrt()
    return groups.with_columns(low=groups["mean"] - half, high=groups["mean"] + half).drop("deviation", "rows")


def plus_minus(values: Values, digits: int = 3, scale: float = 1.0) -> str:
    """A cell of a table: the mean over seeds and half of its interval, the mean alone where there is none."""
    judged = values.at_least(0)  # any level: what is wanted is the interval
    half = (judged.high - judged.low) / 2
    return f"{scale * judged.estimate:.{digits}f}" + (f" ± {scale * half:.{digits}f}" if half == half else "")


def band(
    frame: pl.DataFrame,
    *,
    x: str,
    y: str,
    colour: str,
    x_title: str | None = None,
    dash: str | None = None,
    domain: tuple[float, float] | None = None,
    scale: str = "linear",
    width: int = 340,
    height: int = 260,
    title: str = "",
    shaded: bool = True,
) -> Any:
    """Curves of a ``summarise``d frame with their intervals shaded, unless many would cover one another; ``y`` and
    ``x_title`` are titles of axes."""
    extent: dict[str, Any] = {"type": scale, "zero": False}
    if domain is not None:
        extent["domain"] = list(domain)
    base = alt.Chart(frame, width=width, height=height, title=title).encode(
        x=alt.X(f"{x}:Q", title=x_title or x),
        color=alt.Color(f"{colour}:N", title=None, sort=None, legend=alt.Legend(symbolOpacity=1)),
    )
    line = {"strokeDash": alt.StrokeDash(f"{dash}:N", title=None, sort=None)} if dash else {}
    tips = [alt.Tooltip(f"{colour}:N"), alt.Tooltip(f"{x}:Q"), alt.Tooltip("mean:Q", format=".4f"), "seeds:Q"]
    axis = alt.Scale(**extent)
    detail = {"detail": f"{dash}:N"} if dash else {}
    shade = base.mark_area(opacity=0.18, clip=True).encode(y=alt.Y("low:Q", title=y, scale=axis), y2="high:Q", **detail)
    curve = base.mark_line(clip=True).encode(y=alt.Y("mean:Q", title=y, scale=axis), tooltip=tips, **line)
    return alt.layer(shade, curve) if shaded else alt.layer(curve)


def rules(values: dict[str, float], *, width: int = 340) -> Any:
    """Dashed horizontal reference lines with their names."""
    frame = pl.DataFrame({"name": list(values), "value": list(values.values())})
    base = alt.Chart(frame).encode(y="value:Q")
    rule = base.mark_rule(strokeDash=[3, 3], color="#777")
    label = base.mark_text(align="right", baseline="bottom", dy=-2, fontSize=10, color="#555").encode(
        x=alt.value(width), text="name:N"
    )
    return alt.layer(rule, label)
