"""A judgement as a small drawing: the interval, the estimate, a dot per seed, and the values that meet the criterion
shaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from markupsafe import Markup, escape

from assay.lab import Judgement, Region

from .numbers import measured, number

WIDTH, HEIGHT = 250, 46
_MARGIN, _MIDDLE = 10, 11
_TOP, _BOTTOM = 2, 28  # of the shade, in which the interval has the upper half and the seeds the lower
_SEEDS_Y, _LABEL_Y = 21.5, 41
_SAME = 1e-9  # relative distance from an edge that is rounding
_LOG_FROM = 1000.0  # how many times the smallest shown value the largest must be to need a logarithmic axis
_LABEL_ROOM = 56


def words(judgement: Judgement) -> str:
    """The estimate and its interval as text."""
    if math.isnan(judgement.estimate):
        return ""
    if math.isnan(judgement.low) or math.isnan(judgement.high):
        return number(judgement.estimate)
    return measured(judgement.estimate, judgement.low, judgement.high)


def draw(judgement: Judgement) -> Markup:
    """An inline SVG, coloured by the page's style sheet; empty when there is nothing to show."""
    region, near = _stated(judgement)
    ends = [near(end) for end in (judgement.low, judgement.high) if math.isfinite(end)]
    estimate = near(judgement.estimate)
    seeds = [near(value) for value in judgement.by_seed if math.isfinite(value)]
    points = [estimate, *ends] if math.isfinite(estimate) else ends
    if not points:
        return Markup("")
    edges = _edges(region)
    place, logarithmic = _scale([*points, *edges, *seeds])
    parts = [_shade(region, place), _line("axis", 0, WIDTH, _MIDDLE)]
    parts += [_edge(place(edge), region) for edge in edges]
    parts.append(_dots(map(place, seeds)))
    if len(ends) == 2:
        left, right = place(ends[0]), place(ends[1])
        parts.append(_line("span", left, right, _MIDDLE))
        parts += [_upright("cap", x, _MIDDLE - 4, _MIDDLE + 4) for x in (left, right)]
    if math.isfinite(estimate):
        parts.append(f'<circle class="dot" cx="{place(estimate):.1f}" cy="{_MIDDLE}" r="4"/>')
    parts += _labels(edges, place)
    if logarithmic:
        parts.append(f'<text class="scale" x="{WIDTH}" y="{HEIGHT + 6}" text-anchor="end">log scale</text>')
    height = HEIGHT + 8 if logarithmic else HEIGHT
    label = escape(f"{words(judgement)}; criterion: {judgement.criterion}; {judgement.verdict}")
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    # Every part is made of numbers alone; the label is the only text from outside, and it is escaped.
    return Markup(f'<svg class="interval" role="img" aria-label="{label}" {size}>{"".join(parts)}</svg>')


def _dots(places: Iterable[float]) -> str:
    """A dot per seed; a page has thousands, so that height and size stand once."""
    dots = "".join(f'<circle cx="{x:.1f}"/>' for x in places)
    return f'<g class="seeds" transform="translate(0 {_SEEDS_Y})">{dots}</g>' if dots else ""


def _stated(judgement: Judgement) -> tuple[Region | None, Callable[[float], float]]:
    """The region as the criterion states it, and a function that moves what is at one of its edges, within the
    criterion's tolerance or rounding, to that edge: stretched to the width of the drawing, nothing would look far."""
    read, tolerance = Region.read(judgement.criterion)
    # The words round to six digits, so the judgement's own edges are used where it has no tolerance in them.
    region = judgement.region if judgement.region is not None and not tolerance else read
    edges = _edges(region)

    def near(value: float) -> float:
        return next((edge for edge in edges if abs(value - edge) <= max(tolerance, _SAME * abs(edge))), value)

    return region, near


def _scale(shown: list[float]) -> tuple[Callable[[float], float], bool]:
    """Where a value lies, and whether the axis is logarithmic. Everything shown fits, with air on both sides."""
    least, most = min(shown), max(shown)
    logarithmic = least > 0 and most / least > _LOG_FROM
    level: Callable[[float], float] = math.log10 if logarithmic else float
    low, high = level(least), level(most)
    # All values may be one, and that one may be zero; dividing by the smallest floats overflows.
    air = next((room for room in (0.14 * (high - low), 0.1 * abs(low)) if room > 1e-290), 1.0)
    stretch = (WIDTH - 2 * _MARGIN) / (high - low + 2 * air)
    return lambda value: _MARGIN + (level(value) - low + air) * stretch, logarithmic


def _edges(region: Region | None) -> list[float]:
    ends = (region.low, region.high) if region else ()
    return sorted({end for end in ends if math.isfinite(end)})


def _shade(region: Region | None, place: Callable[[float], float]) -> str:
    if region is None:
        return ""
    left = place(region.low) if math.isfinite(region.low) else 0.0
    right = place(region.high) if math.isfinite(region.high) else float(WIDTH)
    # A criterion of one value would be invisible at its true width.
    if right - left < 3:
        left, right = left - 1.5, right + 1.5
    size = f'width="{right - left:.1f}" height="{_BOTTOM - _TOP}"'
    return f'<rect class="region" x="{left:.1f}" y="{_TOP}" {size} rx="2"/>'


def _edge(x: float, region: Region | None) -> str:
    kind = "edge excluded" if region is not None and region.open else "edge"
    return _upright(kind, x, _TOP, _BOTTOM)


def _labels(edges: list[float], place: Callable[[float], float]) -> list[str]:
    if len(edges) == 2 and place(edges[1]) - place(edges[0]) < _LABEL_ROOM:
        middle = (place(edges[0]) + place(edges[1])) / 2
        return [_label(middle, f"{number(edges[0])} to {number(edges[1])}")]
    return [_label(place(edge), number(edge)) for edge in edges]


def _label(x: float, text: str) -> str:
    room = 3.4 * len(text)
    x = min(max(x, room), WIDTH - room)
    return f'<text x="{x:.1f}" y="{_LABEL_Y}" text-anchor="middle">{text}</text>'


def _line(kind: str, left: float, right: float, y: float) -> str:
    return f'<line class="{kind}" x1="{left:.1f}" x2="{right:.1f}" y1="{y}" y2="{y}"/>'


def _upright(kind: str, x: float, top: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'
