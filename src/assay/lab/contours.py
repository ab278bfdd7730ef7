"""Where a predicted side changes, between the values of a sweep: lines in places of its axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Segment = tuple[float, float, float, float]
FINE = 8  # looks between two neighbouring values


def zero_lines(side: Callable[..., float], axes: Mapping[str, Sequence[Any]]) -> list[Segment]:
    """Segments along which ``side(**values)`` is zero, for one axis or two. Between two numbers of an axis the theory
    is asked at numbers between them, at equal ratios where all are positive and far apart; words have nothing between
    them, so that the change is drawn where a straight line between the two would cross zero."""
    lines = [_looks(values) for values in axes.values()]
    names = list(axes)
    if len(names) == 1:
        found = [(at, side(**{names[0]: value})) for at, value in lines[0]]
        return [(x, 0.0, x, 0.0) for x in _crossings(found)]
    heights = [[side(**{names[0]: x, names[1]: y}) for _, y in lines[1]] for _, x in lines[0]]
    segments: list[Segment] = []
    for i in range(len(lines[0]) - 1):
        for j in range(len(lines[1]) - 1):
            corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
            points = [(lines[0][a][0], lines[1][b][0], heights[a][b]) for a, b in corners]
            ends = list(_around(points))
            segments += [(*ends[k], *ends[k + 1]) for k in range(0, len(ends) - 1, 2)]
    return segments


def _looks(values: Sequence[Any]) -> list[tuple[float, Any]]:
    """Places along an axis with the value at each."""
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    if not numeric:
        return [(float(at), value) for at, value in enumerate(values)]
    ratio = min(values) > 0 and max(values) / min(values) >= 8
    found: list[tuple[float, Any]] = []
    for at, (low, high) in enumerate(pairwise(values)):
        for step in range(FINE):
            share = step / FINE
            between = low * (high / low) ** share if ratio else low + (high - low) * share
            found.append((at + share, between if step else low))
    return [*found, (len(values) - 1.0, values[-1])]


def _crossings(found: Sequence[tuple[float, float]]) -> Iterator[float]:
    for (x, a), (x2, b) in pairwise(found):
        if math.isfinite(a) and math.isfinite(b) and (a > 0) != (b > 0):
            yield x + (x2 - x) * _share(a, b)


def _around(corners: Sequence[tuple[float, float, float]]) -> Iterator[tuple[float, float]]:
    """The points on the edges of a box at which the height changes its sign."""
    if not all(math.isfinite(height) for _, _, height in corners):
        return
    for (x, y, a), (x2, y2, b) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if (a > 0) != (b > 0):
            share = _share(a, b)
            yield x + (x2 - x) * share, y + (y2 - y) * share


def _share(a: float, b: float) -> float:
    """How far from a to b the zero lies; half way where neither says."""
    return abs(a) / (abs(a) + abs(b)) if abs(a) + abs(b) > 0 else 0.5
