"""The tidy table of a run and the queries that claims and figures ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from . import claims
from .claims import Judgement, Region
from .errors import AmbiguousQuery, NotMeasured
from .params import Params


@dataclass(frozen=True)
class Values:
    """One number per seed. Arithmetic between two of them pairs equal seeds."""

    by_seed: Mapping[int, float]
    what: str = ""

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return np.array([self.by_seed[seed] for seed in sorted(self.by_seed)])

    def map(self, function: Callable[[float], float], what: str | None = None) -> Values:
        return Values({seed: float(function(value)) for seed, value in self.by_seed.items()}, what or self.what)

    def named(self, what: str) -> Values:
        """The same values under another name in the criterion."""
        return Values(self.by_seed, what)

    def _pair(self, other: Values | float, operation: Callable[[float, float], float], sign: str) -> Values:
        if not isinstance(other, Values):
            return self.map(lambda value: operation(value, other), f"{self.what} {sign} {other:g}")
        shared = sorted(set(self.by_seed) & set(other.by_seed))
        if not shared:
            raise AmbiguousQuery(f"{self.what} and {other.what} share no seed, so they cannot be paired")
        paired = {seed: operation(self.by_seed[seed], other.by_seed[seed]) for seed in shared}
        return Values(paired, f"{self.what} {sign} {other.what}")

    def __sub__(self, other: Values | float) -> Values:
        return self._pair(other, lambda a, b: a - b, "−")

    def __add__(self, other: Values | float) -> Values:
        return self._pair(other, lambda a, b: a + b, "+")

    def __mul__(self, other: Values | float) -> Values:
        return self._pair(other, lambda a, b: a * b, "×")

    def __truediv__(self, other: Values | float) -> Values:
        return self._pair(other, lambda a, b: a / b if b else float("nan"), "/")

    def judge(self, region: Region) -> Judgement:
        return claims.over_seeds(self.array, region, what=self.what)

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


@dataclass(frozen=True)
class Every:
    """All rows of a query, for criteria that must hold in every seed and step."""

    values: np.ndarray[Any, Any]
    seeds: int
    what: str = ""

    def named(self, what: str) -> Every:
        return Every(self.values, self.seeds, what)

    def at_least(self, level: float, *, tolerance: float = 0.0) -> Judgement:
        return claims.every(self.values, Region(low=level), seeds=self.seeds, tolerance=tolerance, what=self.what)

    def at_most(self, level: float, *, tolerance: float = 0.0) -> Judgement:
        return claims.every(self.values, Region(high=level), seeds=self.seeds, tolerance=tolerance, what=self.what)

    def between(self, low: float, high: float, *, tolerance: float = 0.0) -> Judgement:
        return claims.every(self.values, Region(low, high), seeds=self.seeds, tolerance=tolerance, what=self.what)


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
    ) -> None:
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
        if isinstance(arm, str) and arm not in frame["arm"]:
            raise NotMeasured(f"the arm '{arm}' did not run")
        if metric is not None:
            where = {"metric": metric, **where}
        for column, wanted in where.items():
            if column not in frame.columns:
                raise NotMeasured(f"nothing was measured with a column '{column}'")
            if wanted is None:
                frame = frame.filter(pl.col(column).is_null())
            elif isinstance(wanted, (list, tuple, set)):
                frame = frame.filter(pl.col(column).is_in(list(wanted)))
            else:
                frame = frame.filter(pl.col(column) == wanted)
        if frame.is_empty():
            raise NotMeasured("nothing was measured for " + _describe(where))
        return frame

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
        whole = pl.col("value").is_finite().all()
        best = curve.group_by("seed").agg(pl.when(whole).then(pl.col("value").max()).otherwise(float("nan")))
        return Values(dict(best.select("seed", "value").iter_rows()), f"best {_name(metric, where)}")

    def curve(self, metric: str, **where: Any) -> pl.DataFrame:
        """The rows of one curve per seed, sorted by step; refuses when two curves would be mixed."""
        rows = self._one_condition(metric, where)
        if rows.select("seed", "step").is_duplicated().any():
            raise AmbiguousQuery(_ambiguous(rows, metric))
        return rows.sort("seed", "step")

    def steps_to(self, metric: str, level: float, **where: Any) -> Values:
        """The first step at which the metric reaches ``level``. A seed that never does counts with its last step,
        which is less than it would take. In a claim that A is faster than B, a seed of B that never reaches the level
        only makes the claim harder to meet; one of A helps it, so such a claim also asks that A reaches the level."""
        curve = self.curve(metric, **where)
        # To Polars NaN is larger than any number, so a diverged run would reach every level.
        reached = pl.when(pl.col("value").is_finite() & (pl.col("value") >= level)).then(pl.col("step"))
        first = curve.group_by("seed").agg(reached.min().alias("reached"), pl.col("step").max().alias("last"))
        values = first.select("seed", pl.coalesce("reached", "last").cast(pl.Float64))
        return Values(dict(values.iter_rows()), f"steps to {level:g} in {_name(metric, where)}")

    def area(self, metric: str, **where: Any) -> Values:
        """The mean of the curve over its steps (the area under it per step, by the trapezoid rule)."""
        values: dict[int, float] = {}
        for (seed,), rows in self.curve(metric, **where).group_by("seed"):
            steps, heights = rows["step"].to_numpy(), rows["value"].to_numpy()
            if len(steps) < 2:
                raise AmbiguousQuery(f"{_name(metric, where)} has one step, and an area needs a curve")
            values[int(seed)] = float(np.trapezoid(heights, steps) / (steps[-1] - steps[0]))
        return Values(values, f"mean over steps of {_name(metric, where)}")

    def every(self, metric: str, **where: Any) -> Every:
        """All matching rows, for a criterion that no row may miss."""
        rows = self.rows(metric, **where)
        return Every(rows["value"].to_numpy(), rows["seed"].n_unique(), _name(metric, where))

    def array(self, name: str, *, step: int | None = None, **where: Any) -> np.ndarray[Any, Any]:
        """A recorded array with all seeds of the run stacked in order: (seeds, ...)."""
        key = name if step is None else f"{name}@{step}"
        parts = self._arrays(key, where) if self._arrays else []
        if not parts:
            raise NotMeasured(f"no array {key} was recorded for " + _describe(where))
        seeds = [seed for part, _ in parts for seed in part]
        if len(set(seeds)) != len(seeds):
            raise AmbiguousQuery(f"array {key} was recorded by several units per seed; name the arm and its setting")
        stacked = np.concatenate([array for _, array in parts])
        return np.asarray(stacked[np.argsort(seeds, kind="stable")])

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
