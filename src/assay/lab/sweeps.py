"""Where does a claim hold? A grid of parameter settings, each a stored run of its own kind, judged one by one."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from . import results, runner
from .contours import zero_lines
from .dispatch import Options
from .errors import NotMeasured, UserError, unknown
from .events import Listener, Said
from .findings import Claim
from .grids import Place, check_axes, coarse_to_fine
from .manifest import Manifest
from .measurements import Measurements
from .params import Params
from .phase_map import DECIDED, Cell, PhaseMap, cell_of
from .planning import Plan, make_plan
from .registry import Boundary
from .store import Store
from .stored import Run
from .study import Study, judge_claim
from .units import Request

AT_ONCE = 4  # cells between two looks at the clock


@dataclass(frozen=True)
class Asked:
    """What a person asked for: a claim of a study over a grid, and what else its runs have."""

    study: Study
    claim: Claim
    axes: Mapping[str, Sequence[Any]]
    request: Request
    budget: float | None = None


class Sweep:
    """A sweep at work. Its map is written to the store after every round of cells."""

    def __init__(self, asked: Asked, store: Store, options: Options, tell: Listener) -> None:
        check_axes(asked.axes)
        self.asked, self.store, self.tell = asked, store, tell
        self.options = replace(options, kind="sweep")
        self.boundary: Boundary | None = asked.study.boundaries.get(asked.claim.id)
        self.params: dict[Place, Params] = {}
        self.impossible: dict[Place, str] = {}
        self.axes = self._typed_axes()
        self.cells: dict[Place, Cell] = {}
        self.criterion = ""
        self.arms: list[str] = []
        self.before: list[Manifest] = store.readable_manifests(cells=True)

    def run(self) -> PhaseMap:
        """All cells, or with a budget from coarse to fine until it is spent."""
        started, budget = time.perf_counter(), self.asked.budget
        self.arms = arms = self._arms()
        rounds = coarse_to_fine(self._lengths, self._differ, everywhere=budget is None)
        for places in rounds:
            for some in _batches(places, AT_ONCE if budget else len(places)):
                if budget is not None and self.cells and time.perf_counter() - started > budget:
                    self.tell(Said("the time is up; the same command with more of it goes on where this one stopped"))
                    return self._keep()
                self._visit(some, arms)
            self._keep()
        return self._keep()

    def _keep(self) -> PhaseMap:
        """The map as it is now, written down under the name of what was asked."""
        found = self._mapped()
        self.store.write_map(self.name, found.to_dict())
        return found

    @property
    def name(self) -> str:
        """A name for the map: the claim, and a hash of everything that was asked for but the time."""
        request = self.asked.request
        asked = [self.asked.axes, request.preset, request.overrides, request.seeds, request.first_seed, request.arms]
        text = json.dumps([*asked, request.point, request.device], sort_keys=True, default=str)
        return f"{self.asked.claim.id}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"

    @property
    def _lengths(self) -> list[int]:
        return [len(values) for values in self.asked.axes.values()]

    def _overrides(self, place: Place) -> dict[str, Any]:
        chosen = {name: self.asked.axes[name][at] for name, at in zip(self.asked.axes, place, strict=True)}
        return {**self.asked.request.overrides, **chosen}

    def _typed_axes(self) -> dict[str, list[Any]]:
        """The values as the parameters have them. Settings that do not go together are cells without a run."""
        study, preset = self.asked.study, self.asked.request.preset
        for name in self.asked.axes:
            if (own := name.rpartition(".")[2]) not in study.model.model_fields:
                raise unknown("parameter", own, study.model.model_fields)
        typed: dict[str, list[Any]] = {name: list(values) for name, values in self.asked.axes.items()}
        for place in itertools.product(*(range(length) for length in self._lengths)):
            try:
                overrides = self._overrides(place)
                params = study.resolve(preset, overrides, self.asked.claim.setting)
                for setting in study.settings:
                    study.resolve(preset, overrides, setting)
                self.params[place] = params
                for name, at in zip(typed, place, strict=True):
                    setting, _, own = name.rpartition(".")
                    shown = study.resolve(preset, overrides, setting or None)
                    typed[name][at] = shown.model_dump(mode="json")[own]
            except UserError as error:
                self.impossible[place] = str(error)
        if not self.params:
            raise UserError(f"no cell is possible: {next(iter(self.impossible.values()))}")
        for axis, (name, values) in enumerate(typed.items()):
            for at, value in enumerate(values):
                if all(place[axis] != at for place in self.params):
                    why = next(reason for place, reason in self.impossible.items() if place[axis] == at)
                    raise UserError(f"no cell is possible with {name}={value}: {why}")
        for name, values in typed.items():
            if len({str(value) for value in values}) < len(values):
                raise UserError(f"--vary {name} has two values that come to the same")
        return typed

    def _request(self, place: Place, arms: Iterable[str]) -> Request:
        point = self.asked.request.point or (self.boundary.point if self.boundary else {})
        return replace(self.asked.request, overrides=self._overrides(place), arms=",".join(arms), point=point)

    def _arms(self) -> list[str]:
        """The arms that the claim reads: those asked for, or found by judging one cell again and again, each time with
        the arm that was missing before."""
        if self.asked.request.arms:
            return [name.strip() for name in self.asked.request.arms.split(",")]
        if self.boundary is not None and self.boundary.arms:
            return list(self.boundary.arms)
        place, found = next(iter(self.params)), list[str]()
        while missing := self._missing(place, found):
            found += missing
            self._compute([make_plan(self.asked.study, self._request(place, found), self.store)])
        if not found:
            raise UserError(f"claim {self.asked.claim.id} does not say which arms it reads: name them with --arms")
        return found

    def _missing(self, place: Place, arms: list[str]) -> list[str]:
        if arms:
            plan = make_plan(self.asked.study, self._request(place, arms), self.store)
            measured = results.load(self.store, self.asked.study, runner.manifest_of(plan, self.options))
        else:
            nothing = pl.DataFrame(schema=results.SCHEMA)
            measured = Measurements(nothing, self.params[place], arms=self.asked.study.arms)
        try:
            self.asked.claim.judge(measured)
        except NotMeasured as error:
            return [arm for arm in error.arms if arm not in arms]
        except Exception:
            return []  # the cells will tell
        return []

    def _visit(self, places: Sequence[Place], arms: list[str]) -> None:
        """Compute the units of some cells together, then write down and judge a run for each."""
        possible = [place for place in places if place in self.params]
        plans = {place: make_plan(self.asked.study, self._request(place, arms), self.store) for place in possible}
        failed = self._compute(plans.values())
        for place in places:
            if place not in self.params:
                self.cells[place] = Cell(self._at(place), "not run", reason=self.impossible[place])
            else:
                plan = make_plan(self.asked.study, plans[place].request, self.store)
                self.cells[place] = self._cell(place, plan, failed)

    def _compute(self, plans: Iterable[Plan]) -> dict[str, str]:
        """What went wrong, by the key of the unit."""
        merged = _merged(list(plans))
        if merged is None:
            return {}
        outcome = runner.compute(merged, self.store, self.options, self.tell)
        return {each.unit.key: each.error for each in outcome.failures}

    def _cell(self, place: Place, plan: Plan, failed: Mapping[str, str]) -> Cell:
        run = self._known(plan)
        if run is None:
            wrong = [failed[unit.key] for unit in plan.units if unit.key in failed]
            if wrong or plan.to_compute:
                why = wrong[0] if wrong else "it was not computed"
                return Cell(self._at(place), "not run", reason=why, failed=bool(wrong))
            run = Run(self.store, runner.run(plan, self.store, self.options, _quiet).manifest, self.options.outside)
        judged = judge_claim(self.asked.claim, run.results)
        if judged.error:
            raise UserError(f"claim {self.asked.claim.id} cannot be judged: {judged.error}")
        self.criterion = self.criterion or judged.criterion
        predicted = None if self.boundary is None else float(self.boundary.side(self.params[place]))
        return cell_of(self._at(place), judged, predicted, run.id)

    def _known(self, plan: Plan) -> Run | None:
        """The stored run of this very cell: the same units, and complete."""
        keys = [unit.key for unit in plan.units]
        for manifest in reversed(self.before):
            same = manifest.set == dict(plan.request.overrides) and manifest.status == "complete"
            if same and [unit.key for unit in manifest.units] == keys:
                return Run(self.store, manifest, self.options.outside)
        return None

    def _at(self, place: Place) -> dict[str, Any]:
        return {name: self.axes[name][at] for name, at in zip(self.axes, place, strict=True)}

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
            self.axes,
            cells,
            boundary=self.boundary.says if self.boundary else "",
            segments=self._segments(),
            unvisited=math.prod(self._lengths) - len(cells),
            request=self._shared(),
        )

    def _shared(self) -> dict[str, Any]:
        request = self._request(next(iter(self.params)), self.arms)
        asked = {"seeds": request.seeds, "first_seed": request.first_seed, "arms": request.arms}
        return {**asked, "set": dict(self.asked.request.overrides), "point": dict(request.point)}

    def _segments(self) -> list[tuple[float, float, float, float]]:
        if self.boundary is None:
            return []
        side, names = self.boundary.side, list(self.axes)
        base = next(iter(self.params.values()))

        def value(**chosen: Any) -> float:
            with contextlib.suppress(Exception):  # a theory need not be defined between the values
                return float(side(base.model_copy(update={n.rpartition(".")[2]: v for n, v in chosen.items()})))
            return math.nan

        return zero_lines(value, {name: self.axes[name] for name in names})


def _batches(places: Sequence[Place], size: int) -> Iterable[Sequence[Place]]:
    return (places[start : start + size] for start in range(0, len(places), max(1, size)))


def _merged(plans: Sequence[Plan]) -> Plan | None:
    """The units of all plans as one, those that several have once."""
    if not plans:
        return None
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
