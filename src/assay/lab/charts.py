"""Parts that studies' figures share: summaries over seeds and curves with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from .every import Every
from .intervals import student
from .values import Exact, Values
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


def measured(found: Values | Every | Exact, digits: int = 4) -> str:
    """A cell of a table of unlike quantities, in significant digits: the mean over seeds with its interval in brackets;
    where some seeds have no finite value the mean over the others and their number; of all rows of a query the least to
    the largest; a number that no seed has a part in by itself."""
    if isinstance(found, Exact):
        return f"{found.value:.{digits}g}"
    if isinstance(found, Every):
        ends = [f"{end + 0:.{digits}g}" for end in (found.values.min(), found.values.max())]  # + 0: no −0
        return " to ".join(dict.fromkeys(ends))
    judged = found.at_least(0)  # any level: what is wanted is the interval
    if (finite := int(np.isfinite(found.array).sum())) < len(found.array):
        return f"{judged.estimate:.{digits}g} in {finite} of {len(found.array)} seeds" if finite else "no finite value"
    interval = f" [{judged.low:.{digits}g}, {judged.high:.{digits}g}]" if judged.low == judged.low else ""
    return f"{judged.estimate:.{digits}g}{interval}"


def by_claim(rows: Iterable[tuple[str, str, Values | Every | Exact, str]]) -> pl.DataFrame:
    """A table of unlike quantities: the claim that each belongs to, what it is, what was measured, what is expected."""
    cells = [(claim, what, measured(found), expected) for claim, what, found, expected in rows]
    return pl.DataFrame(cells, schema=["claim", "quantity", "measured", "expected"], orient="row")


def quantities(rows: Mapping[str, tuple[Values | Every | Exact, str]]) -> pl.DataFrame:
    """A table of single quantities, each with what is expected of it: the mean over seeds and in brackets its interval,
    of many rows the smallest and the largest, of a number without seeds that number."""
    return pl.DataFrame(
        [
            {"quantity": name, "measured": measured(found), "expected": expected}
            for name, (found, expected) in rows.items()
        ]
    )


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
        x=alt.X(f"{x}:Q", title=x_title or x, axis=alt.Axis(labelSeparation=6)),  # numbers that touch read as one
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
