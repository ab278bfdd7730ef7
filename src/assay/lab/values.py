"""Numbers over seeds, and what can be made of them on the way to a verdict.

A value that is not finite never helps a claim. ``max``, ``min`` and comparisons lose NaN in Python, so everything here
that makes numbers out of numbers gives NaN where one of them is not finite, and the criteria never hold with a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from . import verdicts
from .errors import AmbiguousQuery
from .intervals import Counted, Scale
from .regions import Region
from .verdicts import Judgement


@dataclass(frozen=True)
class Values:
    """One number per seed. Arithmetic between two of them pairs equal seeds; a seed without a finite number has no
    finite result."""

    by_seed: Mapping[int, float]
    what: str = ""
    scale: Scale = "plain"
    counted: Counted | None = None

    @classmethod
    def measured(cls, by_seed: Mapping[int, float], what: str, trials: Mapping[int, int] | None = None) -> Values:
        """Numbers as they were recorded: shares of so many trials, or answers that are right (1) or wrong (0)."""
        if trials and all(math.isfinite(value) for value in by_seed.values()):
            successes = sum(value * trials[seed] for seed, value in by_seed.items())
            return cls(by_seed, what, "share", Counted(((1.0, successes, float(sum(trials.values()))),)))
        # All of one kind may as well be a number that is 1 in every seed; recorded as booleans they have trials.
        return cls(by_seed, what, "share" if set(by_seed.values()) == {0.0, 1.0} else "plain")

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return np.array([self.by_seed[seed] for seed in sorted(self.by_seed)])

    def map(self, function: Callable[[float], float], what: str | None = None) -> Values:
        return Values({seed: _whole(function, value) for seed, value in self.by_seed.items()}, what or self.what)

    def named(self, what: str) -> Values:
        """The same values under another name in the criterion."""
        return replace(self, what=what)

    def _pair(self, other: Values | float, operation: Callable[[float, float], float], sign: str) -> Values:
        if not isinstance(other, Values):
            return self.map(lambda value: _whole(operation, value, other), f"{self.what} {sign} {other:g}")
        shared = _shared_seeds([self, other], f"{self.what} and {other.what}")
        paired = {seed: _whole(operation, self.by_seed[seed], other.by_seed[seed]) for seed in shared}
        return Values(paired, f"{self.what} {sign} {other.what}")

    def _moved(self, made: Values, own: float, other: Values | float = 0.0, theirs: float = 0.0) -> Values:
        """The result of an operation whose derivatives are ``own`` and ``theirs``, as unsure as its counted shares."""
        parts = [self.counted.times(own)] if self.counted is not None else []
        if isinstance(other, Values) and other.counted is not None:
            parts.append(other.counted.times(theirs))
        known = all(map(math.isfinite, (own, theirs))) and bool(parts)
        return replace(made, counted=sum(parts[1:], parts[0]) if known else None)

    def __sub__(self, other: Values | float) -> Values:
        return self._moved(self._pair(other, lambda a, b: a - b, "−"), 1.0, other, -1.0)

    def __add__(self, other: Values | float) -> Values:
        return self._moved(self._pair(other, lambda a, b: a + b, "+"), 1.0, other, 1.0)

    def __mul__(self, other: Values | float) -> Values:
        made = self._pair(other, lambda a, b: a * b, "×")
        if isinstance(other, Values):
            return self._moved(made, _mean(other), other, _mean(self))
        return replace(self._moved(made, other), scale=self.scale if other > 0 and self.scale == "ratio" else "plain")

    def __truediv__(self, other: Values | float) -> Values:
        made = self._pair(other, _ratio, "/")
        if isinstance(other, Values):
            slopes = (_ratio(1.0, _mean(other)), -_ratio(_mean(self), _mean(other) ** 2))
            return replace(self._moved(made, slopes[0], other, slopes[1]), scale="ratio")
        kept = self.scale if other > 0 and self.scale == "ratio" else "plain"
        return replace(self._moved(made, _ratio(1.0, other)), scale=kept)

    def __rsub__(self, other: float) -> Values:
        made = self._moved(self.map(lambda value: other - value, f"{other:g} − {self.what}"), -1.0)
        return replace(made, scale="share" if self.scale == "share" and other == 1 else "plain")

    def __radd__(self, other: float) -> Values:
        return self._moved(self.map(lambda value: other + value, f"{other:g} + {self.what}"), 1.0)

    def __rmul__(self, other: float) -> Values:
        return replace(self * other, what=f"{other:g} × {self.what}")

    def __rtruediv__(self, other: float) -> Values:
        made = self.map(lambda value: _ratio(other, value), f"{other:g} / {self.what}")
        return replace(self._moved(made, -_ratio(other, _mean(self) ** 2)), scale="ratio")

    def judge(self, region: Region, *, target: float | None = None) -> Judgement:
        return verdicts.over_seeds(
            self.array, region, what=self.what, scale=self.scale, counted=self.counted, target=target
        )

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

    def equals(self, target: float, *, within: float, because: str) -> Judgement:
        """A claim of equality: no farther than a margin from the target. ``because`` says where the margin comes from,
        and the finding says when the two differ all the same."""
        judged = self.judge(Region(target - within, target + within), target=target)
        return replace(judged, criterion=f"{judged.criterion} (margin: {because})")


@dataclass(frozen=True)
class Exact:
    """A number that no seed has a part in."""

    value: float
    what: str = ""

    def named(self, what: str) -> Exact:
        return Exact(self.value, what)

    def at_least(self, level: float) -> Judgement:
        return verdicts.exact(self.value, Region(low=level), what=self.what)

    def at_most(self, level: float) -> Judgement:
        return verdicts.exact(self.value, Region(high=level), what=self.what)

    def above(self, level: float) -> Judgement:
        return verdicts.exact(self.value, Region(low=level, open=True), what=self.what)

    def below(self, level: float) -> Judgement:
        return verdicts.exact(self.value, Region(high=level, open=True), what=self.what)

    def between(self, low: float, high: float) -> Judgement:
        return verdicts.exact(self.value, Region(low, high), what=self.what)


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
        return self._judge(Region(low=level), tolerance)

    def at_most(self, level: float, *, tolerance: float = 0.0) -> Judgement:
        return self._judge(Region(high=level), tolerance)

    def between(self, low: float, high: float, *, tolerance: float = 0.0) -> Judgement:
        return self._judge(Region(low, high), tolerance)

    def _judge(self, region: Region, tolerance: float) -> Judgement:
        seeds = self.rows["seed"].to_list()
        return verdicts.every(
            self.values, region, seeds=seeds, tolerance=tolerance, what=self.what, where=self._name_of
        )

    def _name_of(self, row: int) -> str:
        """A row by its seed, its step and whatever else tells it from the others."""
        labels = self.rows.drop("value", "metric", "trials", strict=False)
        told = [c for c in labels.columns if c == "seed" or (labels[c].n_unique() > 1 and labels[c][row] is not None)]
        return ", ".join(f"{column} {labels[column][row]}" for column in dict.fromkeys(("seed", *told)))


def combine(choose: Callable[[list[float]], Any], parts: Iterable[Values], what: str) -> Values:
    """One value per seed, chosen among the parts' values or made of them: ``combine(max, parts, "worst ε")``. A seed
    that some part does not have is left out, as in a difference; one in which some part is not finite is NaN."""
    parts = list(parts)
    shared = _shared_seeds(parts, what)
    chosen = {seed: _whole(lambda *v: choose(list(v)), *(p.by_seed[seed] for p in parts)) for seed in shared}
    if not all(part.scale == "share" for part in parts):
        return Values(chosen, what)
    widest = max((p.counted for p in parts if p.counted is not None), key=lambda c: max(c.reach(0.95)), default=None)
    return Values(chosen, what, "share", widest)


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
    return replace(chosen, by_seed={seed: chosen.by_seed[seed] if seed in whole else math.nan for seed in shared})


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


def _mean(values: Values) -> float:
    return float(values.array.mean())


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
