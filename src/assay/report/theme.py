"""One look for all charts: readable type, a palette that colour-blind readers can tell apart, a light grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt

FONT = "Inter, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
# Okabe and Ito's colours, the strongest first and without their yellow, which is lost on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6472", "#7a4fb5")
INK, SOFT, LINE, GRID = "#1c2430", "#4d5866", "#a3adba", "#e9edf1"
_COMPOSED = ("hconcat", "vconcat", "concat", "facet", "repeat")
_DIGITS = 6


def spec(chart: Any) -> dict[str, Any]:
    """The chart as a Vega-Lite specification in the house look; what the chart itself configures wins.

    The look is merged into the specification and not registered with Altair, so that nobody's own theme changes.
    """
    if not hasattr(chart, "to_dict"):
        raise TypeError(f"a figure returns an Altair chart, and this one returned {type(chart).__name__}")
    with alt.theme.enable("none"), alt.data_transformers.enable("default", max_rows=None):
        made: dict[str, Any] = chart.to_dict()
    made["config"] = _merged(_config(made), made.get("config", {}))
    if "datasets" in made:
        made["datasets"] = {name: _tidy(rows) for name, rows in made["datasets"].items()}
    return made


def row_count(made: Mapping[str, Any]) -> int:
    return sum(len(rows) for rows in made.get("datasets", {}).values())


def _config(made: Mapping[str, Any]) -> dict[str, Any]:
    """A chart that stands alone fills the column; the parts of a composed one share it."""
    parts = any(key in made for key in _COMPOSED) or bool({"row", "column", "facet"} & made.get("encoding", {}).keys())
    width, height = (270, 220) if parts else (600, 320)
    bands, angle = _bands(made, width)
    words = {"labelFontSize": 12, "titleFontSize": 12.5, "labelColor": SOFT, "titleColor": INK, "titleFontWeight": 600}
    return {
        "background": "white",
        "font": FONT,
        "view": {
            "stroke": None,
            "continuousWidth": width,
            "continuousHeight": height,
            "discreteWidth": bands,
            "discreteHeight": {"step": 28},
        },
        "axis": {
            **words,
            "gridColor": GRID,
            "domainColor": LINE,
            "tickColor": LINE,
            "tickSize": 4,
            "labelPadding": 4,
            "titlePadding": 9,
            "labelLimit": 240,
        },
        "axisXDiscrete": {"labelAngle": angle},
        "legend": {
            **words,
            "symbolSize": 90,
            "symbolOpacity": 1,
            "symbolStrokeWidth": 2,
            "labelLimit": 260,
            "offset": 20,
            "rowPadding": 5,
        },
        "header": {**words, "labelFontWeight": 600, "labelColor": INK, "labelPadding": 6},
        "title": {
            "fontSize": 14,
            "fontWeight": 600,
            "color": INK,
            "anchor": "start",
            "offset": 10,
            "subtitleColor": SOFT,
        },
        "text": {"fontSize": 12, "color": INK},
        "mark": {"color": PALETTE[0]},
        "line": {"strokeWidth": 2},
        "scale": {"barBandPaddingInner": 0.25},
        "point": {"size": 55, "filled": True},
        "rule": {"color": SOFT},
        "errorband": {"band": {"opacity": 0.18}},
        "range": {
            "category": list(PALETTE),
            "heatmap": {"scheme": "viridis"},
            "ramp": {"scheme": "viridis"},
            "ordinal": {"scheme": "viridis"},
            "diverging": {"scheme": "blueorange"},
        },
    }


def _bands(made: Mapping[str, Any], most: float) -> tuple[float, int]:
    """The width of a horizontal axis of categories and the angle of its labels: as wide as the labels want, at seven
    pixels a letter, and turned where they would still run into each other."""
    rows = [row for data in made.get("datasets", {}).values() for row in data if isinstance(row, dict)]
    widths, fit = [], True
    for field in _categories(made):
        labels = {str(row[field]) for row in rows if row.get(field) is not None}
        if labels:
            letters = 7 * max(map(len, labels))
            widths.append(min(most, len(labels) * min(110, max(64, letters + 14))))
            fit = fit and letters + 6 < widths[-1] / len(labels)
    return max(widths, default=most), 0 if fit else -40


def _categories(part: Any) -> Iterator[str]:
    """The fields that some view of the chart lays out in bands along its horizontal axis."""
    if isinstance(part, list):
        for item in part:
            yield from _categories(item)
    elif isinstance(part, dict):
        axis = part.get("encoding", {}).get("x", {})
        if axis.get("type") in ("nominal", "ordinal") and isinstance(axis.get("field"), str):
            yield axis["field"]
        for key in ("layer", "spec", *_COMPOSED):
            yield from _categories(part.get(key, []))


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        result[name] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def _tidy(rows: Any) -> Any:
    """Rows with floats that no eye or JSON parser stumbles over: six digits, and null for what is not finite."""
    if not isinstance(rows, list):
        return rows
    return [{k: _short(v) for k, v in row.items()} if isinstance(row, dict) else _short(row) for row in rows]


def _short(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else float(f"{value:.{_DIGITS}g}")
