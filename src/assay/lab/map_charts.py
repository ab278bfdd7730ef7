"""Charts of a sweep: a map over two parameters, a curve along one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

if TYPE_CHECKING:
    from .phase_map import Cell, PhaseMap

MARKS = {"holds": "✓", "fails": "✗", "undecided": "?", "not run": "–"}
COLOURS = {"holds": "#0072b2", "fails": "#d55e00", "undecided": "#999999", "not run": "#dddddd"}
CLIPPED = 3.0  # reaches of an interval beyond which a margin is drawn alike
SIDE = 320
INK, EDGE = "#0d0f12", "#fdfdfd"


def maps(found: PhaseMap) -> Any:
    """Margin and estimate over two parameters, with the predicted boundary."""
    rows = [_placed(found, cell) for cell in found.cells]
    margins = alt.Color(
        "clipped:Q",
        title="margin",
        scale=alt.Scale(domain=[-CLIPPED, 0, CLIPPED], range=["#d55e00", "#f7f7f7", "#0072b2"]),
        legend=alt.Legend(format="+.0f"),
    )
    estimates = alt.Color("estimate:Q", title="estimate", scale=alt.Scale(scheme="viridis"))
    charts = [
        _map(found, rows, margins, f"{found.claim}: where it holds", marked=True),
        _map(found, rows, estimates, _shortened(found.criterion), marked=False),
    ]
    return alt.hconcat(*charts).resolve_scale(color="independent")


def _map(found: PhaseMap, rows: list[dict[str, Any]], colour: Any, title: str, *, marked: bool) -> Any:
    x, y = found.axes
    base = alt.Chart(pl.DataFrame(rows), width=SIDE, height=SIDE, title=title)
    tips = [alt.Tooltip("cell:N"), alt.Tooltip("verdict:N"), alt.Tooltip("shown:N", title="estimate"), "run:N"]
    across = alt.X("x:Q", title=x, axis=_axis(found.axes[x]), scale=_scale(found.axes[x]))
    up = alt.Y("y:Q", title=y, axis=_axis(found.axes[y]), scale=_scale(found.axes[y]))
    layers = [base.mark_rect().encode(x=across, x2="x2:Q", y=up, y2="y2:Q", color=colour, tooltip=tips)]
    if marked:
        named = base.mark_text(fontSize=12).encode(
            color=alt.condition("abs(datum.clipped) > 1.5", alt.value("white"), alt.value("#333")),
            x=alt.X("cx:Q", scale=_scale(found.axes[x])),
            y=alt.Y("cy:Q", scale=_scale(found.axes[y])),
            text="mark:N",
        )
        layers.append(named)
    if found.segments:
        lines = [dict(zip(("x", "y", "x2", "y2"), each, strict=True)) for each in found.segments]
        drawn = alt.Chart(pl.DataFrame(lines)).encode(x="x:Q", y="y:Q", x2="x2:Q", y2="y2:Q")
        # Dark on a light edge: it is seen on every cell, and not turned into its opposite on a dark page.
        layers += [drawn.mark_rule(color=colour, strokeWidth=width) for colour, width in ((EDGE, 4.5), (INK, 2))]
    return alt.layer(*layers)


def curve(found: PhaseMap) -> Any:
    """The estimate along one parameter, coloured by its verdict; a rule where the predicted side changes."""
    ((name, values),) = found.axes.items()
    rows = [_placed(found, cell) for cell in found.cells]
    base = alt.Chart(pl.DataFrame(rows), width=2 * SIDE, height=SIDE, title=f"{found.claim}: where it holds").encode(
        x=alt.X("cx:Q", title=name, axis=_axis(values), scale=_scale(values)),
        color=alt.Color("verdict:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), title=None),
    )
    y = alt.Y("estimate:Q", title=_shortened(found.criterion), scale=alt.Scale(zero=False))
    layers = [
        base.mark_rule().encode(y=alt.Y("low:Q", title=_shortened(found.criterion)), y2="high:Q"),
        base.mark_point(filled=True, size=70).encode(y=y, tooltip=["cell:N", "verdict:N", "shown:N", "run:N"]),
    ]
    if found.segments:
        lines = [{"x": each[0]} for each in found.segments]
        drawn = alt.Chart(pl.DataFrame(lines)).mark_rule(color="black", strokeWidth=2, strokeDash=[4, 3])
        layers.append(drawn.encode(x="x:Q"))
    return alt.layer(*layers)


def _placed(found: PhaseMap, cell: Cell) -> dict[str, Any]:
    """A cell as a row: its place and its square, what is shown of it."""
    places = [list(values).index(cell.at[name]) for name, values in found.axes.items()]
    x, y = places[0], places[1] if len(places) > 1 else 0
    finite = {n: v if math.isfinite(v := getattr(cell, n)) else None for n in ("estimate", "low", "high")}
    margin = cell.margin
    clipped = None if math.isnan(margin) else max(-CLIPPED, min(CLIPPED, margin))
    interval = f" [{cell.low:.4g}, {cell.high:.4g}]" if math.isfinite(cell.low) else ""
    return {
        "x": x - 0.5,
        "x2": x + 0.5,
        "cx": x,
        "y": y - 0.5,
        "y2": y + 0.5,
        "cy": y,
        "cell": ", ".join(f"{name} = {value}" for name, value in cell.at.items()),
        "verdict": cell.verdict,
        "mark": MARKS[cell.verdict],
        "clipped": clipped,
        "shown": f"{cell.estimate:.4g}{interval}" if finite["estimate"] is not None else cell.reason,
        "run": cell.run,
        **finite,
    }


def _axis(values: Sequence[Any]) -> Any:
    """Places named by their values; of many, some."""
    step = max(1, math.ceil(len(values) / 12))
    names = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
    shown = list(range(0, len(values), step))
    return alt.Axis(values=shown, labelExpr=f"{json.dumps(names)}[datum.value]", grid=False, tickBand="center")


def _scale(values: Sequence[Any]) -> Any:
    return alt.Scale(domain=[-0.5, len(values) - 0.5], nice=False)


def _shortened(criterion: str, most: int = 60) -> str:
    return criterion if len(criterion) <= most else criterion[: most - 1].rstrip() + "…"
