"""The grid of a sweep: values along one or two parameters, and an order that goes from coarse to fine."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .errors import UserError

Place = tuple[int, ...]  # the place of a cell: an index along every axis
MOST_AXES = 2
MOST_VALUES = 10_000
_RANGE = re.compile(r"\s*(?P<low>[^,]+?)\s*\.\.\s*(?P<high>[^,:]+?)\s*:\s*(?P<count>\d+)\s*(?P<log>log)?\s*")


def parse_axis(text: str) -> tuple[str, list[str]]:
    """``name=1,2,4``, or ``name=0.1..0.5:9`` for nine values evenly apart, ``name=1..1000:7log`` for equal ratios, or
    ``name=1,2;1,4`` where each value is itself a list."""
    name, equals, given = text.partition("=")
    if not equals or not name.strip() or not given.strip():
        raise UserError(f"--vary takes name=value,value,... or name=low..high:count, and '{text}' is not of that form")
    if span := _RANGE.fullmatch(given):
        return name.strip(), _between(text, span)
    if ".." in given:
        raise UserError(f"a range is low..high:count, as in 0.1..0.5:9 or 1..1000:7log, and '{given}' is not")
    # Of a parameter that takes several, values are told apart by semicolons: widths=16,32;32,64.
    values = [value.strip() for value in given.split(";" if ";" in given else ",") if value.strip()]
    if len(set(values)) != len(values):
        raise UserError(f"--vary {text} names a value twice")
    return name.strip(), values


def _between(text: str, span: re.Match[str]) -> list[str]:
    try:
        low, high, count = float(span["low"]), float(span["high"]), int(span["count"])
    except ValueError:
        raise UserError(f"the ends of a range are numbers, and those of '{text}' are not") from None
    if count < 2 or low == high or (span["log"] and min(low, high) <= 0):
        raise UserError(f"'{text}' is no range: two ends that differ, from two values on, and positive ends for log")
    if count > MOST_VALUES:
        raise UserError(f"'{text}' asks for {count} values, and an axis has at most {MOST_VALUES}")
    shares = [step / (count - 1) for step in range(count)]
    made = [low * (high / low) ** share if span["log"] else low + (high - low) * share for share in shares]
    if all("." not in span[end] and "e" not in span[end].lower() for end in ("low", "high")):
        made = list(dict.fromkeys(float(round(value)) for value in made))  # whole ends: whole values
    return [f"{value:.6g}" for value in made]


def check_axes(axes: Mapping[str, Sequence[Any]]) -> None:
    if not 1 <= len(axes) <= MOST_AXES:
        raise UserError(f"a map has one or two axes: --vary once or twice, not {len(axes)} times")
    for name, values in axes.items():
        if len(values) < 2:
            raise UserError(f"--vary {name} needs at least two values to go between")


def coarse_to_fine(
    lengths: Sequence[int], differ: Callable[[Sequence[Place]], bool], *, everywhere: bool
) -> Iterator[list[Place]]:
    """Cells in rounds, each on a grid twice as fine as the one before. The first is the corners and what lies between
    them at a large stride; later ones have every cell of their grid, or, unless ``everywhere``, those inside boxes
    whose corners ``differ``."""
    stride = 1
    while 2 * stride < max(lengths) - 1:
        stride *= 2
    seen: set[Place] = set()
    coarse: list[list[int]] | None = None
    while stride >= 1:
        lines = [sorted({*range(0, length, stride), length - 1}) for length in lengths]
        wanted = [place for place in itertools.product(*lines) if place not in seen]
        if coarse is not None and not everywhere:
            wanted = [place for place in wanted if differ(_corners(place, coarse))]
        seen.update(wanted)
        if wanted:
            yield wanted
        coarse, stride = lines, stride // 2


def _corners(place: Place, lines: Sequence[Sequence[int]]) -> list[Place]:
    """The corners of the coarse box that a place lies in."""
    around = []
    for index, line in zip(place, lines, strict=True):
        around.append({max(i for i in line if i <= index), min(i for i in line if i >= index)})
    return list(itertools.product(*(sorted(ends) for ends in around)))
