"""All rows of a query, for criteria that must hold in every seed and step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from . import verdicts
from .errors import AmbiguousQuery
from .finite import ratio, whole
from .regions import Region
from .values import Values
from .verdicts import Judgement


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
        return self._with([whole(function, value) for value in self.values.tolist()], what or self.what)

    def named(self, what: str) -> Every:
        return Every(self.rows, what)

    def _with(self, values: list[float], what: str) -> Every:
        return Every(self.rows.with_columns(pl.Series("value", values, dtype=pl.Float64)), what)

    def _pair(self, other: Every | float, operation: Callable[[float, float], float], sign: str) -> Every:
        if not isinstance(other, Every):
            return self.map(lambda value: whole(operation, value, other), f"{self.what} {sign} {other:g}")
        theirs = self._in_this_order(other)
        paired = [whole(operation, a, b) for a, b in zip(self.values.tolist(), theirs, strict=True)]
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
        return self._pair(other, ratio, "/")

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


def pool(parts: Iterable[Values], what: str) -> Every:
    """The values of all parts in all their seeds, for a criterion that none may miss."""
    rows = [(i, seed, part.by_seed[seed]) for i, part in enumerate(parts) for seed in sorted(part.by_seed)]
    schema = {"part": pl.Int64, "seed": pl.Int64, "value": pl.Float64}
    return Every(pl.DataFrame(rows, schema=schema, orient="row"), what)


def _varies(column: str, sides: list[pl.DataFrame]) -> bool:
    return any(column in side.columns and side[column].n_unique() > 1 for side in sides)
