"""Numbers over seeds, and what can be made of them on the way to a verdict.

A value that is not finite never helps a claim. ``max``, ``min`` and comparisons lose NaN in Python, so everything here
that makes numbers out of numbers gives NaN where one of them is not finite, and the criteria never hold with a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from . import verdicts
from .errors import AmbiguousQuery
from .verdicts import Judgement, Region


@dataclass(frozen=True)
class Values:
    """One number per seed. Arithmetic between two of them pairs equal seeds; a seed without a finite number has no
    finite result."""

    by_seed: Mapping[int, float]
    what: str = ""

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return np.array([self.by_seed[seed] for seed in sorted(self.by_seed)])

    def map(self, function: Callable[[float], float], what: str | None = None) -> Values:
        return Values({seed: _whole(function, value) for seed, value in self.by_seed.items()}, what or self.what)

    def named(self, what: str) -> Values:
        """The same values under another name in the criterion."""
        return Values(self.by_seed, what)

    def _pair(self, other: Values | float, operation: Callable[[float, float], float], sign: str) -> Values:
        if not isinstance(other, Values):
            return self.map(lambda value: _whole(operation, value, other), f"{self.what} {sign} {other:g}")
        shared = _shared_seeds([self, other], f"{self.what} and {other.what}")
        paired = {seed: _whole(operation, self.by_seed[seed], other.by_seed[seed]) for seed in shared}
        return Values(paired, f"{self.what} {sign} {other.what}")

    def __sub__(self, other: Values | float) -> Values:
        return self._pair(other, lambda a, b: a - b, "−")

    def __add__(self, other: Values | float) -> Values:
        return self._pair(other, lambda a, b: a + b, "+")

    def __mul__(self, other: Values | float) -> Values:
        return self._pair(other, lambda a, b: a * b, "×")

    def __truediv__(self, other: Values | float) -> Values:
        return self._pair(other, _ratio, "/")

    def __rsub__(self, other: float) -> Values:
        return self.map(lambda value: other - value, f"{other:g} − {self.what}")

    def __radd__(self, other: float) -> Values:
        return self.map(lambda value: other + value, f"{other:g} + {self.what}")

    def __rmul__(self, other: float) -> Values:
        return self.map(lambda value: other * value, f"{other:g} × {self.what}")

    def __rtruediv__(self, other: float) -> Values:
        return self.map(lambda value: _ratio(other, value), f"{other:g} / {self.what}")

    def judge(self, region: Region) -> Judgement:
        return verdicts.over_seeds(self.array, region, what=self.what)

    def at_least(self, level: float) -> Judgement:
        return self.judge(Region(low=level))

    def at_most(self, level: float) -> Judgement:
        return self.judge(Region(high=level))

    def above(self, level: float) -> Judgement:
        return self.judge(Region(low=level, open=True))

    def below(self, level: float) -> Judgement:
        return self.judge(Region(high=level, open=True))

    def between(self, low: float, high: float) -> Judgement:
        return self.judge(Region(low, high))


@dataclass(frozen=True, eq=False)
class Every:
    """All rows of a query, for criteria that must hold in every seed and step. ``rows`` has a seed and a value in each
    row; its other columns say what the row is of, so that arithmetic between two of them pairs equal rows."""

    rows: pl.DataFrame
    what: str = ""

    @property
    def values(self) -> np.ndarray[Any, Any]:
        return self.rows["value"].to_numpy()

    @property
    def seeds(self) -> int:
        return self.rows["seed"].n_unique()

    def map(self, function: Callable[[float], float], what: str | None = None) -> Every:
        return self._with([_whole(function, value) for value in self.values.tolist()], what or self.what)

    def named(self, what: str) -> Every:
        return Every(self.rows, what)

    def _with(self, values: list[float], what: str) -> Every:
        return Every(self.rows.with_columns(pl.Series("value", values, dtype=pl.Float64)), what)

    def _pair(self, other: Every | float, operation: Callable[[float, float], float], sign: str) -> Every:
        if not isinstance(other, Every):
            return self.map(lambda value: _whole(operation, value, other), f"{self.what} {sign} {other:g}")
        theirs = self._in_this_order(other)
        paired = [_whole(operation, a, b) for a, b in zip(self.values.tolist(), theirs, strict=True)]
        return self._with(paired, f"{self.what} {sign} {other.what}")

    def _in_this_order(self, other: Every) -> list[float]:
        """The other's values row by row; refused where the two have different rows, or rows that look alike."""
        sides = [side.rows.drop("value", "metric", strict=False) for side in (self, other)]
        # A column that is the same all over a side is part of its query: two arms or steps can be compared.
        columns = dict.fromkeys(["seed", *sides[0].columns, *sides[1].columns])
        labels = [column for column in columns if column == "seed" or _varies(column, sides)]
        both = f"{self.what} and {other.what}"
        if not all(label in side.columns for label in labels for side in sides):
            raise AmbiguousQuery(f"{both} are told apart by different columns, so they cannot be paired")
        if any(side.select(labels).is_duplicated().any() for side in sides):
            raise AmbiguousQuery(f"{both} have rows that {', '.join(labels)} do not tell apart")
        ours, theirs = sides[0].select(labels), other.rows.select(*labels, "value")
        joined = ours.join(theirs, on=labels, how="inner", nulls_equal=True, maintain_order="left")
        if not len(joined) == len(ours) == len(theirs):
            raise AmbiguousQuery(f"{both} have different rows, so they cannot be paired")
        return joined["value"].to_numpy().tolist()  # type: ignore[no-any-return]

    def __sub__(self, other: Every | float) -> Every:
        return self._pair(other, lambda a, b: a - b, "−")

    def __add__(self, other: Every | float) -> Every:
        return self._pair(other, lambda a, b: a + b, "+")

    def __mul__(self, other: Every | float) -> Every:
        return self._pair(other, lambda a, b: a * b, "×")

    def __truediv__(self, other: Every | float) -> Every:
        return self._pair(other, _ratio, "/")

    def at_least(self, level: float, *, tolerance: float = 0.0) -> Judgement:
        return verdicts.every(self.values, Region(low=level), seeds=self.seeds, tolerance=tolerance, what=self.what)

    def at_most(self, level: float, *, tolerance: float = 0.0) -> Judgement:
        return verdicts.every(self.values, Region(high=level), seeds=self.seeds, tolerance=tolerance, what=self.what)

    def between(self, low: float, high: float, *, tolerance: float = 0.0) -> Judgement:
        return verdicts.every(self.values, Region(low, high), seeds=self.seeds, tolerance=tolerance, what=self.what)


def combine(choose: Callable[[list[float]], Any], parts: Iterable[Values], what: str) -> Values:
    """One value per seed, chosen among the parts' values or made of them: ``combine(max, parts, "worst ε")``. A seed
    that some part does not have is left out, as in a difference; one in which some part is not finite is NaN."""
    parts = list(parts)
    shared = _shared_seeds(parts, what)
    return Values(
        {seed: _whole(lambda *v: choose(list(v)), *(p.by_seed[seed] for p in parts)) for seed in shared}, what
    )


def farthest_from(level: float) -> Callable[[list[float]], float]:
    """For ``combine``: the value that is farthest from ``level``, the worst where all should be there."""
    return lambda values: max(values, key=lambda value: abs(value - level))


def pick(choose: Callable[[Iterable[float]], float], parts: Iterable[Values]) -> Values:
    """The part with the largest (``max``) or smallest (``min``) mean over the seeds, under its own name. A seed in
    which some part is not finite is NaN: it might have made another the choice."""
    parts = list(parts)
    shared = _shared_seeds(parts, "a choice")
    whole = [seed for seed in shared if all(math.isfinite(part.by_seed[seed]) for part in parts)]
    heights = [sum(part.by_seed[seed] for seed in whole) for part in parts]  # over the same seeds, so like the means
    chosen = parts[heights.index(choose(heights))]
    return Values({seed: chosen.by_seed[seed] if seed in whole else math.nan for seed in shared}, chosen.what)


def pool(parts: Iterable[Values], what: str) -> Every:
    """The values of all parts in all their seeds, for a criterion that none may miss."""
    rows = [(i, seed, part.by_seed[seed]) for i, part in enumerate(parts) for seed in sorted(part.by_seed)]
    schema = {"part": pl.Int64, "seed": pl.Int64, "value": pl.Float64}
    return Every(pl.DataFrame(rows, schema=schema, orient="row"), what)


def _whole(function: Callable[..., Any], *values: float) -> float:
    """The function of numbers that are all finite; NaN of any others, which a comparison would make a plain number. A
    number that the function is not made for (the logarithm of 0) gives NaN too: it was measured, and is no mistake."""
    if not all(map(math.isfinite, values)):
        return math.nan
    try:
        return float(function(*values))
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.nan


def _ratio(a: float, b: float) -> float:
    return a / b if b else math.nan


def _shared_seeds(parts: list[Values], what: str) -> list[int]:
    if not parts:
        raise AmbiguousQuery(f"there is nothing to make {what} of")
    shared = sorted(set.intersection(*(set(part.by_seed) for part in parts)))
    if not shared:
        raise AmbiguousQuery(f"{what}: the parts share no seed, so they cannot be paired")
    return shared


def _varies(column: str, sides: list[pl.DataFrame]) -> bool:
    return any(column in side.columns and side[column].n_unique() > 1 for side in sides)
