"""Where a claim holds: a map over one or two parameters, with the boundary that the theory predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay._reports import NOT_SAVED, Report, plain

from .verdicts import Judgement

DECIDED = ("holds", "fails")
ORIGIN = ("device", "versions", "machine", "commit", "started", "unit_seconds")  # as in the summary of a run


@dataclass(frozen=True)
class Cell:
    """One setting of the parameters with its verdict. ``margin`` is the distance of the estimate from the criterion's
    edge, positive where it is met, in reaches of its interval: beyond ±1 it is decided. ``met`` says whether the
    criterion is met: by the verdict where it is decided, by the estimate where it is not. ``predicted`` is positive
    where the theory says that the claim holds; None or NaN where it says nothing. ``failed`` when one of its units, the
    claim or the theory broke off with an error, which is the ``reason``."""

    at: Mapping[str, Any]
    verdict: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    margin: float = math.nan
    met: bool | None = None
    seeds: int = 0
    predicted: float | None = None
    run: str = ""
    reason: str = ""
    failed: bool = False

    @property
    def agrees(self) -> bool | None:
        """Whether the estimate is on the side that the theory predicts; None where there is none, or no prediction."""
        if self.predicted is None or not math.isfinite(self.predicted) or self.met is None:
            return None
        return self.met == (self.predicted > 0)

    def row(self, explained: bool = False, predicts: bool = True) -> dict[str, Any]:
        numbers = {"estimate": self.estimate, "low": self.low, "high": self.high, "margin": self.margin}
        theory = {"predicted": self.predicted, "agrees": self.agrees} if predicts else {}
        row = {**self.at, "verdict": self.verdict, **numbers, **theory, "seeds": self.seeds, "run": self.run}
        return row | ({"reason": self.reason} if explained else {})


def cell_of(at: Mapping[str, Any], judged: Judgement, predicted: float | None, run: str) -> Cell:
    """A cell from the judgement of its run."""
    met = _met(judged)
    reason = judged.reason or ("" if math.isfinite(judged.estimate) else "the claim gave no estimate")
    return Cell(
        at,
        judged.verdict,
        judged.estimate,
        judged.low,
        judged.high,
        _margin(judged.verdict, met, judged.margin),
        met,
        judged.seeds,
        predicted,
        run,
        reason,
    )


def _met(judged: Judgement) -> bool | None:
    if judged.verdict in DECIDED:
        return judged.verdict == "holds"
    if judged.region is None or not judged.seeds:
        return None
    # A value that is not finite counts as the worst one, also where the others leave an estimate.
    known = all(map(math.isfinite, judged.by_seed))
    return known and judged.region.has(judged.estimate)


def _margin(verdict: str, met: bool | None, size: float) -> float:
    """Positive where the criterion is met; without a size of its own, as far as can be where it is decided."""
    if met is None:
        return math.nan
    size = size if math.isfinite(size) else math.inf if verdict in DECIDED else 0.0
    return size if met else -size


@dataclass(frozen=True, repr=False)
class PhaseMap(Report):
    """The cells of a sweep. ``segments`` is the predicted boundary in places of the axes, (x, y, x2, y2) each;
    ``unvisited`` counts the cells that a budget left out; ``request`` is what all cells share: seeds, arms, parameters
    that were set; ``origin`` says where and when they were computed."""

    study: str
    preset: str
    claim: str
    statement: str
    criterion: str
    axes: Mapping[str, Sequence[Any]]
    cells: Sequence[Cell]
    boundary: str = ""
    segments: Sequence[tuple[float, float, float, float]] = field(default=())
    unvisited: int = 0
    request: Mapping[str, Any] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict, metadata=NOT_SAVED)  # but under its own names

    @property
    def counts(self) -> dict[str, int]:
        verdicts = [cell.verdict for cell in self.cells]
        return {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}

    @property
    def compared(self) -> list[Cell]:
        """The cells that were measured and have a prediction."""
        return [cell for cell in self.cells if cell.agrees is not None]

    @property
    def agreement(self) -> float:
        """The share of these whose estimate is on the predicted side; NaN where there is none."""
        return _share(self.compared)

    @property
    def decided_agreement(self) -> float:
        """The same among those whose verdict is decided."""
        return _share([cell for cell in self.compared if cell.verdict in DECIDED])

    def headline(self) -> str:
        axes = " and ".join(self.axes)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        left = f", {self.unvisited} not visited" if self.unvisited else ""
        lines = [f"{self.study} {self.claim} over {axes} ({self.preset}): {counts}{left}", self.statement]
        if self.boundary:
            decided = sum(cell.verdict in DECIDED for cell in self.compared)
            share = f"{self.agreement:.0%} of {len(self.compared)} cells" if self.compared else "no cell was measured"
            among = f", {self.decided_agreement:.0%} of the {decided} decided" if decided else ""
            lines.append(f"Predicted: {self.boundary} On the predicted side: {share}{among}.")
        return "\n".join(lines)

    def table(self) -> list[dict[str, Any]]:
        explained = any(cell.reason and (cell.failed or not math.isfinite(cell.low)) for cell in self.cells)
        predicts = any(cell.predicted is not None for cell in self.cells)
        return [cell.row(explained, predicts) for cell in self.cells]

    def figure(self) -> Any:
        """The margin and the estimate: two maps side by side, or along one parameter a curve with its intervals."""
        from .map_charts import curve, maps

        return maps(self) if len(self.axes) == 2 else curve(self)

    def to_dict(self) -> dict[str, Any]:
        shares = {"agreement": self.agreement, "decided_agreement": self.decided_agreement}
        # A file sorts the names, and segments are places along the axes in this order.
        found = {**super().to_dict(), **plain(shares), "compared": len(self.compared), "over": list(self.axes)}
        return {**found, **self.origin}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PhaseMap:
        """A map as ``to_dict`` wrote it down. Without the order of the axes the way of its boundary is lost."""
        given = {name: document[name] for name in cls.__dataclass_fields__ if name in document}
        cells = [_read(cell) for cell in given["cells"]]
        order = document.get("over", list(given["axes"]))
        known = "over" in document or len(order) == 1
        segments = [tuple(each) for each in given["segments"]] if known else []
        axes = {name: given["axes"][name] for name in order}
        for place, cell in enumerate(cells):
            cells[place] = replace(cell, at={name: cell.at[name] for name in order})
        origin = {name: document[name] for name in ORIGIN if name in document}
        return cls(**given | {"cells": cells, "segments": segments, "axes": axes, "origin": origin})


def _share(cells: Sequence[Cell]) -> float:
    return sum(bool(cell.agrees) for cell in cells) / len(cells) if cells else math.nan


def _read(document: Mapping[str, Any]) -> Cell:
    """A cell as it was written down, where no number stands for one that is not finite."""
    lost = {n: math.nan for n in ("estimate", "low", "high", "margin") if document.get(n) is None}
    cell = Cell(**{**document, **lost})
    return replace(cell, margin=_margin(cell.verdict, cell.met, math.nan)) if "margin" in lost else cell
