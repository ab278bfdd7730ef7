"""Charts as files and as data for the page, drawn by Vega-Lite without the network."""

from __future__ import annotations

import base64
import json
import re
import zlib
from functools import cache
from typing import Any

import altair as alt
import vl_convert

from .theme import row_count

FORMATS = ("svg", "png", "pdf")
_CANVAS_FROM = 4000  # rows; a browser slows down with as many SVG elements
_WORDS_OR_DECIMALS = re.compile(r">[^<>]+<|(?<=\d)\.\d{3,}")


def drawing(spec: dict[str, Any]) -> str:
    """The chart as SVG. No address is allowed, so a chart that wants data from the network is refused."""
    return slim(str(vl_convert.vegalite_to_svg(spec, vl_version=_version(), allowed_base_urls=[])))


def export(spec: dict[str, Any], kind: str, svg: str) -> bytes:
    """The chart as a file; ``svg`` is its drawing."""
    if kind == "svg":
        return svg.encode()
    if kind == "png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2, vl_version=_version(), allowed_base_urls=[]))
    return bytes(vl_convert.svg_to_pdf(svg))


def slim(svg: str) -> str:
    """The drawing without the words that Vega gives each mark for screen readers, coordinates to a hundredth of a
    pixel, and opacity where it needs no layer of its own: files that are three to five times smaller."""
    svg = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"| opacity="1"', "", svg)
    svg = re.sub(r'(<path [^>]*?) opacity="([\d.]+)"', r'\1 fill-opacity="\2" stroke-opacity="\2"', svg)
    return _WORDS_OR_DECIMALS.sub(_shortened, svg)


def _shortened(found: re.Match[str]) -> str:
    if found[0][0] == ">":  # words, in which 0.003 stays 0.003
        return found[0]
    return f"{float(found[0]):.2f}"[1:] if float(found[0]) < 0.995 else ".99"


def width(svg: str) -> float:
    """The width of a drawing in pixels."""
    found = re.search(r'<svg[^>]* width="([\d.]+)"', svg)
    return float(found[1]) if found else 0.0


def packed(spec: dict[str, Any]) -> str:
    """The specification for a script element: JSON, deflated and in base 64, a third of its size. Its rows become
    columns, which names each field once; the page's script turns them back."""
    datasets = {name: _columns(rows) for name, rows in spec.get("datasets", {}).items()}
    compact = {**spec, "datasets": datasets} if datasets else spec
    text = json.dumps(compact, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(data: str) -> str:
    """The JSON of a packed specification."""
    return zlib.decompress(base64.b64decode(data)).decode()


def renderer(spec: dict[str, Any]) -> str:
    return "canvas" if row_count(spec) > _CANVAS_FROM else "svg"


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which every page of a site shares."""
    script = str(vl_convert.javascript_bundle(vl_version=_version()))  # type: ignore[call-arg]  # its stub is wrong
    # Its thousands of short names stay inside a function, away from the pages' own.
    return "(function(){" + script + "})();"


def _columns(rows: Any) -> Any:
    if not rows or not all(isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows):
        return rows
    return {"columns": {name: [row[name] for row in rows] for name in rows[0]}}


@cache
def _version() -> str | None:
    """The Vega-Lite that Altair writes for, where the converter has it; otherwise its newest."""
    written = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return written if written in vl_convert.get_vegalite_versions() else None
