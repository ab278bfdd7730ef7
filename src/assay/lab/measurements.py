"""The tidy table of a run and the queries that claims and figures ask of it.

A value that is not finite never helps a claim. ``max``, ``min`` and comparisons lose NaN in Python, so everything here
that makes numbers out of numbers gives NaN where one of them is not finite, and the criteria never hold with a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from . import verdicts
from .errors import AmbiguousQuery, BrokenQuery, NotMeasured, unknown
from .params import Params
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


class Measurements:
    """A run as claims and figures see it: ``frame`` is the tidy table, ``params`` the resolved parameters."""

    def __init__(
        self,
        frame: pl.DataFrame,
        params: Params,
        *,
        setting_params: Callable[[str], Params] | None = None,
        arrays: Callable[[str, Mapping[str, Any]], list[tuple[list[int], np.ndarray[Any, Any]]]] | None = None,
        notes: list[dict[str, Any]] | None = None,
        paper: pl.DataFrame | None = None,
        arms: Collection[str] | None = None,
        settled: Collection[str] = (),
        array_names: Callable[[Mapping[str, Any]], Iterable[str]] | None = None,
    ) -> None:
        """``arms`` are those that the study has; of those in ``settled`` everything was measured that its preset asks
        for, so that a query which finds nothing there is a mistake of its author."""
        self._arms = arms
        self._settled = settled
        self._array_names = array_names
        self.frame = frame
        self.params = params
        self._setting_params = setting_params
        self._arrays = arrays
        self._notes = notes or []
        self.paper = paper if paper is not None else pl.DataFrame()

    def params_of(self, setting: str) -> Params:
        """The parameters under a named setting."""
        return self._setting_params(setting) if self._setting_params else self.params

    def rows(self, metric: str | Iterable[str] | None = None, **where: Any) -> pl.DataFrame:
        """The matching rows; a list as a value means any of its members. Raises NotMeasured when there are none."""
        frame = self.frame
        arm = where.get("arm")
        arms = [arm] if isinstance(arm, str) else list(arm) if isinstance(arm, (list, tuple, set)) else []
        for name in arms:
            if self._arms is not None and name not in self._arms:
                raise BrokenQuery(str(unknown("arm", name, self._arms)))
        if arms and not set(arms) & set(frame["arm"]):
            named = f"arm '{arms[0]}'" if len(arms) == 1 else "arms " + ", ".join(f"'{name}'" for name in arms)
            raise NotMeasured(f"the {named} did not run")
        if metric is not None:
            where = {"metric": metric, **where}
        for column, wanted in where.items():
            if column not in frame.columns:
                raise self._nothing(arms, f"nothing was measured with a column '{column}'")
            if wanted is None:
                frame = frame.filter(pl.col(column).is_null())
            elif isinstance(wanted, (list, tuple, set)):
                frame = frame.filter(pl.col(column).is_in(list(wanted)))
            else:
                frame = frame.filter(pl.col(column) == wanted)
        if frame.is_empty() and isinstance(metric, str) and arms:
            recorded = self.frame.filter(pl.col("arm").is_in(arms))["metric"].unique().to_list()
            if metric not in recorded:
                raise self._nothing(arms, str(unknown("metric", metric, sorted(recorded))))
        if frame.is_empty():
            raise self._nothing(arms, "nothing was measured for " + _describe(where))
        return frame

    def _nothing(self, arms: list[str], what: str) -> Exception:
        whole = bool(arms) and set(arms) <= set(self._settled)
        return BrokenQuery(f"{what}, and the arm ran whole") if whole else NotMeasured(what)

    def final(self, metric: str, **where: Any) -> Values:
        """Each seed's value at its last step."""
        rows = self._one_condition(metric, where)
        last = pl.col("step").fill_null(-1) == pl.col("step").fill_null(-1).max().over("seed")
        return self._one_per_seed(rows.filter(last), metric, where)

    def at(self, metric: str, step: int, **where: Any) -> Values:
        """Each seed's value at one step."""
        return self._one_per_seed(self.rows(metric, step=step, **where), metric, {**where, "step": step})

    def best(self, metric: str, **where: Any) -> Values:
        """Each seed's largest value over the steps of one curve; NaN for a curve with a value that is not finite."""
        curve = self.curve(metric, **where)
        return self.per_seed(curve, lambda rows: rows["value"].max(), f"best {_name(metric, where)}")

    def curve(self, metric: str, **where: Any) -> pl.DataFrame:
        """The rows of one curve per seed, sorted by step; refuses when two curves would be mixed."""
        rows = self._one_condition(metric, where)
        if rows.select("seed", "step").is_duplicated().any():
            raise AmbiguousQuery(_ambiguous(rows, metric))
        return rows.sort("seed", "step")

    def steps_to(self, metric: str, level: float, **where: Any) -> Values:
        """The first step at which the metric reaches ``level``. A seed that never does counts with its last step,
        which is less than it would take. In a claim that A is faster than B, a seed of B that never reaches the level
        only makes the claim harder to meet; one of A helps it, so such a claim also asks that A reaches the level. A
        curve with a value that is not finite has no such step: it would make a diverged B a slow one."""

        def first(rows: pl.DataFrame) -> float:
            reached = rows.filter(pl.col("value") >= level)
            return float(reached["step"][0] if len(reached) else rows["step"][-1])

        what = f"steps to {level:g} in {_name(metric, where)}"
        return self.per_seed(self.curve(metric, **where), first, what)

    def area(self, metric: str, **where: Any) -> Values:
        """The mean of the curve over its steps (the area under it per step, by the trapezoid rule)."""

        def mean(rows: pl.DataFrame) -> float:
            steps, heights = rows["step"].to_numpy(), rows["value"].to_numpy()
            if len(steps) < 2:
                raise AmbiguousQuery(f"{_name(metric, where)} has one step, and an area needs a curve")
            return float(np.trapezoid(heights, steps) / (steps[-1] - steps[0]))

        return self.per_seed(self.curve(metric, **where), mean, f"mean over steps of {_name(metric, where)}")

    @staticmethod
    def per_seed(rows: pl.DataFrame, function: Callable[[pl.DataFrame], Any], what: str, *, by: str = "step") -> Values:
        """A number made of each seed's rows, which the function gets sorted by a column, where there is such a one. A
        seed with a value that is not finite is NaN, and the function is not asked."""
        if by in rows.columns:
            rows = rows.sort(by, maintain_order=True)
        found: dict[int, float] = {}
        for (seed,), part in rows.group_by("seed", maintain_order=True):
            finite = part["value"].is_finite().fill_null(False).all()
            found[int(seed)] = float(function(part)) if finite else math.nan
        return Values(found, what)

    def every(self, metric: str, **where: Any) -> Every:
        """All matching rows, for a criterion that no row may miss."""
        rows = self.rows(metric, **where)
        return Every(rows, _name(metric, where))

    def array(self, name: str, *, step: int | None = None, **where: Any) -> np.ndarray[Any, Any]:
        """A recorded array with all seeds of the run stacked in order: (seeds, ...)."""
        return self._seeds_and_array(name, step, where)[1]

    def array_per_seed(
        self,
        name: str,
        function: Callable[[np.ndarray[Any, Any]], Any],
        what: str,
        *,
        step: int | None = None,
        **where: Any,
    ) -> Values:
        """A number made of each seed's part of a recorded array; NaN for one with an entry that is not finite."""
        seeds, stacked = self._seeds_and_array(name, step, where)
        parts = zip(seeds, stacked, strict=True)
        return Values({seed: float(function(x)) if np.isfinite(x).all() else math.nan for seed, x in parts}, what)

    def _seeds_and_array(
        self, name: str, step: int | None, where: Mapping[str, Any]
    ) -> tuple[list[int], np.ndarray[Any, Any]]:
        key = name if step is None else f"{name}@{step}"
        parts = self._arrays(key, where) if self._arrays else []
        if not parts:
            arm = where.get("arm")
            there = sorted(self._array_names(where)) if self._array_names else []
            words = [
                f"'{each.partition('@')[0]}'" + f" at step {each.partition('@')[2]}" * ("@" in each) for each in there
            ]
            asked = f"'{name}'" if step is None else f"'{name}' at step {step}"
            recorded = f" (recorded: {', '.join(words)})" if words else ""
            what = f"no array {asked} was recorded for {_describe(where)}{recorded}"
            raise self._nothing([arm] if isinstance(arm, str) else [], what)
        seeds = [seed for part, _ in parts for seed in part]
        if len(set(seeds)) != len(seeds):
            raise AmbiguousQuery(f"array {key} was recorded by several units per seed; name the arm and its setting")
        stacked = np.concatenate([array for _, array in parts])
        return sorted(seeds), np.asarray(stacked[np.argsort(seeds, kind="stable")])

    def notes(self, **where: Any) -> list[dict[str, Any]]:
        """The choices noted by the matching units."""
        return [note for note in self._notes if all(note.get(key) == value for key, value in where.items())]

    def paper_value(self, **where: Any) -> float | None:
        """The source's printed number for a row of paper.csv, or None."""
        frame = self.paper
        for column, wanted in where.items():
            if column not in frame.columns:
                return None
            frame = frame.filter(pl.col(column) == wanted)
        return float(frame["value"][0]) if len(frame) == 1 else None

    def _one_condition(self, metric: str, where: Mapping[str, Any]) -> pl.DataFrame:
        """The matching rows, refused when a seed has them under several conditions: the one with the most steps
        would be chosen silently, or two curves would be woven into one."""
        rows = self.rows(metric, **where)
        labels = [column for column in rows.columns if column not in ("step", "value")]
        if rows.select(labels).n_unique() > rows["seed"].n_unique():
            raise AmbiguousQuery(_ambiguous(rows.drop("step"), metric))
        return rows

    def _one_per_seed(self, rows: pl.DataFrame, metric: str, where: Mapping[str, Any]) -> Values:
        if rows["seed"].is_duplicated().any():
            raise AmbiguousQuery(_ambiguous(rows, metric))
        return Values(dict(rows.select("seed", "value").iter_rows()), _name(metric, where))


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


def _ambiguous(rows: pl.DataFrame, metric: str) -> str:
    varying = [c for c in rows.columns if c not in ("seed", "value") and rows[c].n_unique() > 1]
    return f"{metric} has several rows per seed; choose one by {', '.join(varying) or 'recording it once'}"


def _describe(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in where.items()) or "this query"


def _name(metric: str, where: Mapping[str, Any]) -> str:
    shown = [str(value) for key, value in where.items() if isinstance(value, (str, int, float)) and key != "step"]
    step = [f"step {where['step']}"] if where.get("step") is not None else []
    label = metric.replace("_", " ")
    return f"{label} of {' '.join(shown + step)}" if shown or step else label
