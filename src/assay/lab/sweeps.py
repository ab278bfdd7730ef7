"""Where does a claim hold? A grid of parameter settings, each a stored run of its own kind, judged one by one."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from . import results, runner
from .clusters import Held
from .contours import zero_lines
from .dispatch import Options, jobs_for
from .errors import BrokenClaim, NotMeasured, UserError, position_of, unknown
from .events import Listener, Said
from .findings import Claim
from .grids import Place, coarse_to_fine
from .manifest import Manifest
from .map_origin import origin_of
from .measurements import Measurements
from .phase_map import DECIDED, Cell, PhaseMap, cell_of
from .planning import Plan, make_plan
from .registry import Boundary
from .store import Store
from .stored import Run
from .stored_cells import StoredCells
from .study import Study, judge_claim
from .sweep_grid import Asked, grid_of
from .units import Request

AT_ONCE = 4  # cells between two looks at the clock


class Sweep:
    """A sweep at work. Its map is written to the store after every round of cells."""

    def __init__(self, asked: Asked, store: Store, options: Options, tell: Listener) -> None:
        self.asked, self.store, self.tell = asked, store, tell
        self.held = Held()
        self.options = replace(options, kind="sweep", held=self.held)
        self.boundary: Boundary | None = asked.study.boundaries.get(asked.claim.id)
        self.grid = grid_of(asked)
        self.cells: dict[Place, Cell] = {}
        self.runs: dict[Place, Manifest] = {}
        self.criterion = ""
        self.arms: list[str] = []
        self.stored = StoredCells(asked.study, store, options.outside)

    def run(self) -> PhaseMap:
        """All cells, or with a budget from coarse to fine until it is spent."""
        with self.held:
            started, budget = time.perf_counter(), self.asked.budget
            self.arms = self._arms()
            took = time.perf_counter() - started
            self._take_stored()
            # Reading what is stored costs none of the time.
            self._visit_all(math.inf if budget is None else time.perf_counter() + budget - took)
        if self._broken:
            raise BrokenClaim(next(cell.reason for cell in self.cells.values() if cell.run))
        return self._keep()

    def _visit_all(self, until: float) -> None:
        everywhere, worked = math.isinf(until), False
        for places in coarse_to_fine(self.grid.lengths, self._differ, everywhere=everywhere):
            wanted = new = [place for place in places if place not in self.cells]
            while wanted:
                if worked and time.perf_counter() > until:
                    self.tell(Said("the time is up; the same command with more of it goes on where this one stopped"))
                    return
                size = len(wanted) if everywhere else self._at_once(wanted[0])
                self._visit(wanted[:size])
                wanted, worked = wanted[size:], True
            if new and not self._broken:
                self._keep()

    def _at_once(self, place: Place) -> int:
        """Cells between two looks at the clock: no worker is without one."""
        plan = make_plan(self.asked.study, self._request(place, self.arms), self.store)
        workers = jobs_for(plan, self._left(plan), self.options)
        if not workers and self.held.workers:  # of a cluster that is used whole
            workers = self.held.workers.count()
        return max(AT_ONCE, workers)

    def _left(self, plan: Plan) -> int:
        """At most so many units are left to compute."""
        return (len(self.grid.params) - sum(place in self.grid.params for place in self.cells)) * len(plan.units)

    @property
    def _broken(self) -> bool:
        """Whether the claim could be judged in none of the cells that have a run."""
        ran = [cell for cell in self.cells.values() if cell.run]
        return bool(ran) and all(cell.failed and cell.verdict == "not run" for cell in ran)

    def _take_stored(self) -> None:
        """Every cell that needs no work, before there is any: else a sweep that is stopped early would leave a map
        with less than the one that it found."""
        for place, reason in self.grid.impossible.items():
            self.cells[place] = Cell(self.grid.at(place), "not run", reason=reason)
        for place in self.grid.params:
            request = self._request(place, self.arms)
            if not self.stored.has(request):
                continue
            plan = make_plan(self.asked.study, request, self.store)
            run = self.stored.run_of(plan)
            if run is not None and all(self.store.whole(unit.key) for unit in plan.units):
                self.cells[place] = self._judged(place, run)
        if any(cell.run for cell in self.cells.values()) and not self._broken:
            self._keep()

    def _keep(self) -> PhaseMap:
        """The map as it is now, written down under the name of what was asked."""
        found = self._mapped()
        self.store.write_map(self.grid.name(self.asked), found.to_dict())
        return found

    def _request(self, place: Place, arms: Iterable[str]) -> Request:
        point = self.asked.request.point or (self.boundary.point if self.boundary else {})
        return replace(self.asked.request, overrides=self.grid.overrides(place), arms=",".join(arms), point=point)

    def _arms(self) -> list[str]:
        """The arms that the claim reads: those asked for, or found by judging one cell again and again, each time with
        the arm that was missing before."""
        if self.asked.request.arms:
            return [name.strip() for name in self.asked.request.arms.split(",")]
        if self.boundary is not None and self.boundary.arms:
            return list(self.boundary.arms)
        found: list[str] = []
        for looks, place in enumerate(self.grid.params, 1):
            while missing := self._missing(place, found):
                found += missing
            if missing is not None or (found and looks == AT_ONCE):
                break  # where something breaks, another cell may get farther
        if not found:
            raise UserError(f"claim {self.asked.claim.id} does not say which arms it reads: name them with --arms")
        return found

    def _missing(self, place: Place, arms: list[str]) -> list[str] | None:
        """The arms that the claim still asks for in a cell; None where a unit or its own code breaks before it could
        say."""
        if arms:
            self._compute([make_plan(self.asked.study, self._request(place, arms), self.store)])
            plan = make_plan(self.asked.study, self._request(place, arms), self.store)
            measured = results.load(self.store, self.asked.study, runner.manifest_of(plan, self.options))
        else:
            nothing = pl.DataFrame(schema=results.SCHEMA)
            measured = Measurements(nothing, self.grid.params[place], arms=self.asked.study.arms)
        try:
            self.asked.claim.judge(measured)
        except NotMeasured as error:
            return [arm for arm in error.arms if arm not in arms] or None
        except Exception:
            return None  # the cells will tell
        return []

    def _visit(self, places: Sequence[Place]) -> None:
        """Compute the units of some cells together, then write down and judge a run for each."""
        study, requests = self.asked.study, {place: self._request(place, self.arms) for place in places}
        failed = self._compute([make_plan(study, request, self.store) for request in requests.values()])
        for place, request in requests.items():
            self.cells[place] = self._cell(place, make_plan(study, request, self.store), failed)

    def _compute(self, plans: Sequence[Plan]) -> dict[str, str]:
        """What went wrong, by the key of the unit."""
        self.held.most = max(map(self._left, plans))
        outcome = runner.compute(_merged(plans), self.store, self.options, self.tell)
        return {each.unit.key: each.error for each in outcome.failures}

    def _cell(self, place: Place, plan: Plan, failed: Mapping[str, str]) -> Cell:
        self.stored.look_again()  # another sweep may have come to this cell meanwhile
        run = self.stored.run_of(plan)
        if run is None:
            wrong = [failed[unit.key] for unit in plan.units if unit.key in failed]
            if wrong or plan.to_compute:
                why = wrong[0] if wrong else "it was not computed"
                return Cell(self.grid.at(place), "not run", reason=why, failed=bool(wrong))
            run = Run(self.store, runner.run(plan, self.store, self.options, _quiet).manifest, self.options.outside)
        return self._judged(place, run)

    def _judged(self, place: Place, run: Run) -> Cell:
        """A cell from its run. Where the claim's code or the theory's breaks, the other cells are none the worse."""
        self.runs[place] = run.manifest
        judged, at = judge_claim(self.asked.claim, run.results), self.grid.at(place)
        predicted, wrong = self._predicted(place)
        if judged.error:
            reason = f"claim {self.asked.claim.id} cannot be judged: {judged.error}"
            return Cell(at, "not run", predicted=predicted, run=run.id, reason=reason, failed=True)
        self.criterion = self.criterion or judged.criterion
        cell = cell_of(at, judged, predicted, run.id)
        return replace(cell, reason="; ".join(filter(None, (cell.reason, wrong))), failed=True) if wrong else cell

    def _predicted(self, place: Place) -> tuple[float | None, str]:
        """What the theory says of a cell, and what went wrong with it."""
        if self.boundary is None:
            return None, ""
        try:
            return float(self.boundary.side(self.grid.params[place])), ""
        except Exception as error:
            return math.nan, f"nothing is predicted: {type(error).__name__}: {error}{position_of(error)}"

    def _differ(self, corners: Sequence[Place]) -> bool:
        """Whether neighbours disagree, or one of them is undecided."""
        verdicts = {self.cells[place].verdict for place in corners if place in self.cells}
        return len(verdicts) > 1 or not verdicts <= set(DECIDED)

    def _mapped(self) -> PhaseMap:
        claim, study = self.asked.claim, self.asked.study
        cells = [self.cells[place] for place in sorted(self.cells)]
        return PhaseMap(
            study.name,
            self.asked.request.preset,
            claim.id,
            claim.statement,
            self.criterion,
            self.grid.axes,
            cells,
            boundary=self.boundary.says if self.boundary else "",
            segments=self._segments(),
            unvisited=math.prod(self.grid.lengths) - len(cells),
            request=self._shared(),
            origin=origin_of(self.runs.values(), self.store),
        )

    def _shared(self) -> dict[str, Any]:
        request = self._request(next(iter(self.grid.params)), self.arms)
        asked = {"seeds": request.seeds, "first_seed": request.first_seed, "arms": request.arms}
        return {**asked, "set": dict(self.grid.shared), "point": dict(request.point)}

    def _segments(self) -> list[tuple[float, float, float, float]]:
        if self.boundary is None:
            return []
        side, names = self.boundary.side, list(self.grid.axes)
        base = next(iter(self.grid.params.values()))

        def value(**chosen: Any) -> float:
            with contextlib.suppress(Exception):  # a theory need not be defined between the values
                return float(side(base.model_copy(update={n.rpartition(".")[2]: v for n, v in chosen.items()})))
            return math.nan

        return zero_lines(value, {name: self.grid.axes[name] for name in names})


def _merged(plans: Sequence[Plan]) -> Plan:
    """The units of all plans as one, those that several have once."""
    units = {(unit.key, unit.takes): unit for plan in plans for unit in plan.units}
    stored = frozenset().union(*(plan.stored for plan in plans))
    return replace(plans[0], units=list(units.values()), stored=stored)


def _quiet(event: object) -> None:
    """A cell whose units are all there has nothing to tell."""


def find_claim(study: Study, claim: str | None) -> Claim:
    """The claim or phase of this name, or the only one with a predicted boundary where none is named."""
    every = {**study.claims, **study.phases}
    if claim is None:
        if len(study.boundaries) == 1:
            return every[next(iter(study.boundaries))]
        known = ", ".join(study.boundaries) or "none of its claims has a predicted boundary"
        raise UserError(f"say which claim of {study.name} to map with --claim ID ({known})")
    if claim not in every:
        raise unknown("claim", claim, every)
    return every[claim]
