"""The tidy table of a run and the queries that claims and figures ask of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic

import numpy as np
import polars as pl

from .errors import AmbiguousQuery, BrokenQuery, NotMeasured, unknown
from .every import Every
from .params import P
from .values import Exact, Values


class Measurements(Generic[P]):
    """A run as claims and figures see it: ``frame`` is the tidy table, ``params`` the resolved parameters."""

    def __init__(
        self,
        frame: pl.DataFrame,
        params: P,
        *,
        setting_params: Callable[[str], P] | None = None,
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
        self._cut: tuple[pl.DataFrame, dict[str, pl.DataFrame]] | None = None
        self.params = params
        self._setting_params = setting_params
        self._arrays = arrays
        self._notes = notes or []
        self.paper = paper if paper is not None else pl.DataFrame()

    def params_of(self, setting: str) -> P:
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
        if arms and not any(name in self._by_arm for name in arms):
            named = f"arm '{arms[0]}'" if len(arms) == 1 else "arms " + ", ".join(f"'{name}'" for name in arms)
            raise NotMeasured(f"the {named} did not run", arms)
        if isinstance(arm, str):
            frame = self._by_arm[arm]
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

    @property
    def _by_arm(self) -> dict[str, pl.DataFrame]:
        """The rows of each arm. Claims ask hundreds of times for a few rows of one arm: a table is cut once."""
        frame = self.frame
        if self._cut is None or self._cut[0] is not frame:
            self._cut = frame, {str(key[0]): rows for key, rows in frame.partition_by("arm", as_dict=True).items()}
        return self._cut[1]

    def _nothing(self, arms: list[str], what: str) -> Exception:
        whole = bool(arms) and set(arms) <= set(self._settled)
        return BrokenQuery(f"{what}, and the arm ran whole") if whole else NotMeasured(what, arms)

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
        known = curve["trials"].unique().to_list() if "trials" in curve.columns else [None]
        trials = known[0] if len(known) == 1 else None
        return self.per_seed(curve, lambda rows: rows["value"].max(), f"best {_name(metric, where)}", trials=trials)

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
    def per_seed(
        rows: pl.DataFrame,
        function: Callable[[pl.DataFrame], Any],
        what: str,
        *,
        by: str = "step",
        trials: int | None = None,
    ) -> Values:
        """A number made of each seed's rows, which the function gets sorted by a column, where there is such a one. A
        seed with a value that is not finite is NaN, and the function is not asked. ``trials`` are those of a share."""
        if by in rows.columns:
            rows = rows.sort(by, maintain_order=True)
        found: dict[int, float] = {}
        for (seed,), part in rows.group_by("seed", maintain_order=True):
            finite = part["value"].is_finite().fill_null(False).all()
            found[int(seed)] = float(function(part)) if finite else math.nan
        return Values.measured(found, what, dict.fromkeys(found, trials) if trials else None)

    def every(self, metric: str | Sequence[str], **where: Any) -> Every:
        """All matching rows, for a criterion that no row may miss; of several arms each must have run."""
        arms = where.get("arm")
        for arm in () if arms is None or isinstance(arms, str) else arms:
            self.rows(metric, **{**where, "arm": arm})
        rows = self.rows(metric, **where)
        return Every(rows, _name(metric if isinstance(metric, str) else " and ".join(metric), where))

    def array(self, name: str, *, step: int | None = None, **where: Any) -> np.ndarray[Any, Any]:
        """A recorded array with all seeds of the run stacked in order: (seeds, ...)."""
        return self._seeds_and_array(name, step, where)[1]

    def array_names(self, **where: Any) -> set[str]:
        """The names of all arrays that the matching units recorded."""
        return set(self._array_names(where)) if self._array_names else set()

    def array_per_seed(
        self,
        name: str,
        function: Callable[[np.ndarray[Any, Any]], Any],
        what: str,
        *,
        step: int | None = None,
        trials: int | None = None,
        **where: Any,
    ) -> Values:
        """A number made of each seed's part of a recorded array; NaN for one with an entry that is not finite.
        ``trials`` are those of a share."""
        seeds, stacked = self._seeds_and_array(name, step, where)
        parts = zip(seeds, stacked, strict=True)
        found = {seed: float(function(x)) if np.isfinite(x).all() else math.nan for seed, x in parts}
        return Values.measured(found, what, dict.fromkeys(found, trials) if trials else None)

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
        """The choices noted by the matching units. Raises NotMeasured where an arm is asked for that did not run."""
        found = [note for note in self._notes if all(note.get(key) == value for key, value in where.items())]
        if not found and isinstance(arm := where.get("arm"), str):
            raise NotMeasured(f"no unit of arm '{arm}' ran with {_describe(where)}", [arm])
        return found

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
        labels = [column for column in rows.columns if column not in ("step", "value", "trials")]
        if rows.select(labels).n_unique() > rows["seed"].n_unique():
            raise AmbiguousQuery(_ambiguous(rows.drop("step"), metric))
        return rows

    def _one_per_seed(self, rows: pl.DataFrame, metric: str, where: Mapping[str, Any]) -> Values:
        if rows["seed"].is_duplicated().any():
            raise AmbiguousQuery(_ambiguous(rows, metric))
        trials = rows["trials"] if "trials" in rows.columns else None
        counted = (
            dict(zip(rows["seed"], trials, strict=True)) if trials is not None and not trials.has_nulls() else None
        )
        return Values.measured(dict(rows.select("seed", "value").iter_rows()), _name(metric, where), counted)

    def exact(self, metric: str, **where: Any) -> Exact:
        """The one number that every seed recorded: a number that no seed has a part in."""
        rows = self._one_condition(metric, where)
        if not rows["value"].is_finite().all():
            return Exact(math.nan, _name(metric, where))
        if rows["value"].n_unique() != 1:
            raise AmbiguousQuery(f"{_name(metric, where)} differs between rows, so it is no number without seeds")
        return Exact(float(rows["value"][0]), _name(metric, where))


def _ambiguous(rows: pl.DataFrame, metric: str) -> str:
    varying = [c for c in rows.columns if c not in ("seed", "value", "trials") and rows[c].n_unique() > 1]
    return f"{metric} has several rows per seed; choose one by {', '.join(varying) or 'recording it once'}"


def _describe(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in where.items()) or "this query"


def _name(metric: str, where: Mapping[str, Any]) -> str:
    shown = [str(value) for key, value in where.items() if isinstance(value, (str, int, float)) and key != "step"]
    step = [f"step {where['step']}"] if where.get("step") is not None else []
    label = metric.replace("_", " ")
    return f"{label} of {' '.join(shown + step)}" if shown or step else label
