"""Charts as files and as data for the page, drawn by Vega-Lite without the network."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import altair as alt
import vl_convert
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from .theme import row_count

FORMATS = ("svg", "png", "pdf")
_CANVAS_FROM = 4000  # rows; a browser slows down with as many SVG elements


def export(spec: dict[str, Any], kind: str) -> bytes:
    """The chart as a file. No address is allowed, so a chart that wants data from the network is refused."""
    options: dict[str, Any] = {"vl_version": _version(), "allowed_base_urls": []}
    if kind == "svg":
        return str(vl_convert.vegalite_to_svg(spec, **options)).encode()
    if kind == "png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2, **options))
    return bytes(vl_convert.vegalite_to_pdf(spec, **options))


def packed(spec: dict[str, Any]) -> Markup:
    """The specification as JSON for a script element. Its rows become columns, which names each field once; the
    page's script turns them back."""
    datasets = {name: _columns(rows) for name, rows in spec.get("datasets", {}).items()}
    compact = {**spec, "datasets": datasets} if datasets else spec
    return htmlsafe_json_dumps(compact, dumps=json.dumps, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def renderer(spec: dict[str, Any]) -> str:
    return "canvas" if row_count(spec) > _CANVAS_FROM else "svg"


@cache
def bundle() -> Markup:
    """Vega, Vega-Lite and Vega-Embed as one script; it contains no closing tag that would end its element."""
    script = str(vl_convert.javascript_bundle(vl_version=_version()))  # type: ignore[call-arg]  # its stub is wrong
    # Its thousands of short names stay inside a function, away from the page's own.
    return Markup("(function(){" + script.replace("</script", "<\\/script") + "})();")


def _columns(rows: Any) -> Any:
    if not rows or not all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows):
        return rows
    return {"columns": {name: [row[name] for row in rows] for name in rows[0]}}


@cache
def _version() -> str | None:
    """The Vega-Lite that Altair writes for, where the converter has it; otherwise its newest."""
    written = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return written if written in vl_convert.get_vegalite_versions() else None
