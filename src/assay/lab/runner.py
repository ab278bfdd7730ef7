"""Running a plan: stored units are skipped, the rest runs on joblib, and every finished unit is stored at once."""

from __future__ import annotations

import contextlib
import datetime
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .backends import check_device, has_device, stop_workers
from .clusters import check_backend
from .dispatch import Options, jobs_for, outcomes
from .divergence import Divergence, divergence
from .events import Finished, Listener, Measured, Said, Started, UnitDone
from .execute import Outcome, environment
from .files import DamagedUnit
from .interrupts import arrays_ready, interrupts_wait, torch_ready
from .manifest import Failure, Manifest, ManifestUnit, check_run_name
from .planning import Plan
from .reasons import NOTHING_YET, reasons
from .store import Lock, Store
from .units import Unit


@dataclass
class RunResult:
    manifest: Manifest
    computed: int = 0
    reused: int = 0
    failures: list[Outcome] = field(default_factory=list)


def run(plan: Plan, store: Store, options: Options, tell: Listener) -> RunResult:
    """Carry out a plan. Killing the process at any moment loses at most the units in flight."""
    torch_ready()
    arrays_ready()
    _make_ready(plan, store, options)
    result = RunResult(manifest_of(plan, options))
    store.write_manifest(result.manifest)
    tell(Started(plan.study.name, len(plan.units), len(plan.to_reuse), result.manifest.id))
    for arm, reason in plan.skipped.items():
        tell(Said(f"arm '{arm}' is left out: {reason}"))
    for sentence in _why(reasons(plan, store)):
        tell(Said(sentence))
    started = time.perf_counter()
    work = _Work(plan, store, options, tell, result)
    status = "interrupted"
    try:
        work.carry_out()
        status = "failed" if result.failures else "complete"
    finally:
        manifest, units = result.manifest, work.units()
        if status == "complete" and not all(store.has_name(unit.key) for unit in units):
            status = "interrupted"  # somebody took units away meanwhile
        manifest.failures = [Failure(unit=o.unit.label, error=o.error, trace=o.trace) for o in result.failures]
        manifest.diverged = work.diverged()
        manifest.seconds = round(time.perf_counter() - started, 3)
        manifest.status, manifest.computed, manifest.reused = status, result.computed, result.reused  # type: ignore[assignment]
        manifest.units = [_listed(unit) for unit in units]
        store.write_manifest(manifest)
        tell(Finished(status, manifest.seconds))
    return result


def compute(plan: Plan, store: Store, options: Options, tell: Listener) -> RunResult:
    """Compute what is missing of a plan and store it, as ``run`` does, with no run written down."""
    _make_ready(plan, store, options)
    result = RunResult(manifest_of(plan, options))
    tell(Started(plan.study.name, len(plan.units), len(plan.to_reuse)))
    _Work(plan, store, options, tell, result).carry_out()
    return result


def _make_ready(plan: Plan, store: Store, options: Options) -> None:
    check_backend(options.backend, options.address)
    device = plan.request.device
    here = options.address is None and options.backend != "slurm"
    # What is stored needs no device: a folder from a machine with a GPU is judged and joined anywhere.
    if here and not has_device(device) and not all(store.whole(unit.key) for unit in plan.units):
        check_device(device)
    store.prepare()
    store.sweep_leftovers()


def _why(found: dict[str, str]) -> Iterator[str]:
    """One line for each reason why something that was stored is not enough, with the arms that it concerns."""
    arms: dict[str, list[str]] = {}
    for arm, reason in found.items():
        if reason != NOTHING_YET:
            arms.setdefault(reason, []).append(f"'{arm}'")
    for reason, names in arms.items():
        which = f"arm {names[0]} is" if len(names) == 1 else f"arms {', '.join(names)} are"
        yield f"{which} computed: {reason}"


def _wanted(unit: Unit) -> str:
    """What a unit of the plan is for, whichever stored unit answers it."""
    return f"{unit.address}/{unit.takes}"


class _Work:
    """The units of a plan on their way into the store."""

    def __init__(self, plan: Plan, store: Store, options: Options, tell: Listener, result: RunResult) -> None:
        self.plan = plan
        self.store = store
        self.options = options
        self.tell = tell
        self.result = result
        self._taken: dict[str, list[Unit]] = {}  # the units that stand for one of the plan, where those are others
        self._diverged: dict[str, Divergence] = {}
        self._smaller: list[Unit] = []
        self._crowded: list[Unit] = []
        self._locks: dict[str, Lock] = {}

    def carry_out(self) -> None:
        waiting = self._pass(self.plan.units, wait=False)
        if held := [unit for unit in waiting if self.store.is_locked(unit.key)]:
            words = "a unit" if len(held) == 1 else f"{len(held)} units"
            self.tell(Said(f"waiting for {words} that another run is computing: {held[0].label}"))
        # What another run was computing meanwhile is either stored by now or ours to compute.
        self._pass(waiting, wait=True)
        while smaller := self._smaller:
            self._smaller = []
            self._pass(smaller, wait=True)
        if crowded := self._crowded:
            # One seed had no room beside other units: it is tried again with the device to itself.
            self._crowded, self.options = [], replace(self.options, jobs=1)
            stop_workers()
            self._pass(crowded, wait=True)

    def units(self) -> list[Unit]:
        """The units that answer the plan, in its order."""
        return [each for unit in self.plan.units for each in self._standing_for(unit)]

    def diverged(self) -> list[Divergence]:
        return [self._diverged[unit.key] for unit in self.units() if unit.key in self._diverged]

    def _standing_for(self, unit: Unit) -> list[Unit]:
        taken = self._taken.get(_wanted(unit), [unit])
        return taken if len(taken) == 1 else [each for half in taken for each in self._standing_for(half)]

    def _pass(self, units: list[Unit], *, wait: bool) -> list[Unit]:
        """Compute what is neither stored nor locked; returns the units that another run holds."""
        held: list[Unit] = []
        claimed = self._claimed(units, held, wait)
        count = min(len(units), len(self.plan.to_compute) or 1)
        found = outcomes(claimed, self.plan, count, self.store, self.options, self.tell)
        try:
            # Closed at once also where an interrupt comes while an outcome is stored: its workers end here.
            with contextlib.closing(found):
                for outcome in found:
                    self._keep(outcome)
                    self._locks.pop(outcome.unit.key).release()
        finally:
            for lock in self._locks.values():
                lock.release()
            self._locks.clear()
        return held

    def _claimed(self, units: list[Unit], held: list[Unit], wait: bool) -> Iterator[Unit]:
        """The units that are ours to compute, each under its lock."""
        for unit in units:
            if not self._lock(unit, wait=wait):
                held.append(unit)
                continue
            fresh = unit.anew()
            if not self._reused(unit):
                self._taken[_wanted(unit)] = [fresh]
                if fresh.key == unit.key:
                    yield fresh
                    continue
                self._locks.pop(unit.key).release()
                self._lock(fresh, wait=True)
                if not self._reused(fresh):
                    yield fresh

    def _lock(self, unit: Unit, *, wait: bool) -> bool:
        lock = self.store.try_lock(unit.key, wait=wait)
        if lock is not None:
            self._locks[unit.key] = lock
        return lock is not None

    def _reused(self, unit: Unit) -> bool:
        """Whether a locked unit is stored whole; then its lock is free again."""
        if not _stored(self.store, unit, self.tell):
            return False
        noted = (self.store.meta(unit.key) or {}).get("diverged", [])
        self._note(unit, noted)
        self._locks.pop(unit.key).release()
        self.result.reused += 1
        self.tell(UnitDone(unit, reused=True, seconds=0.0))
        return True

    def _keep(self, outcome: Outcome) -> None:
        unit = outcome.unit
        if outcome.too_large and len(unit.takes) > 1:
            halves = unit.halves()
            self._taken[_wanted(unit)] = halves
            self._smaller += halves
            self.tell(Said(f"{unit.label} ran out of memory; its seeds are computed in two halves"))
            return
        if outcome.too_large and self._beside_others():
            self._crowded.append(unit)
            self.tell(Said(f"{unit.label} ran out of memory beside other units; it is tried again alone"))
            return
        if outcome.payload is None:
            self.result.failures.append(outcome)
            self.tell(Said(f"{unit.label} failed: {outcome.error}"))
        else:
            with interrupts_wait():  # what is finished is kept
                self.store.write(unit.key, outcome.payload)
                self.store.clear_checkpoints(unit.key)
                self.result.computed += 1
            self._note(unit, outcome.diverged)
            if unit.key in self._diverged:
                self.tell(Said(self._diverged[unit.key].words))
            if outcome.latest:
                self.tell(Measured(unit.label, *outcome.latest))
        self.tell(UnitDone(unit, reused=False, seconds=outcome.seconds, error=outcome.error))

    def _beside_others(self) -> bool:
        """Whether units run side by side on this machine; of a cluster nobody here can say."""
        return self.options.backend == "loky" and jobs_for(self.plan, len(self.plan.units), self.options) > 1

    def _note(self, unit: Unit, noted: Iterable[Mapping[str, Any]]) -> None:
        if found := divergence(unit.point_label, unit.takes, noted):
            self._diverged[unit.key] = found


def _stored(store: Store, unit: Unit, tell: Listener) -> bool:
    """Whether the unit need not be computed: it is stored whole."""
    try:
        return store.has(unit.key)
    except DamagedUnit as damage:
        tell(Said(f"damaged: {damage}; it is computed again"))
        store.discard(unit.key)
        return False


def _listed(unit: Unit) -> ManifestUnit:
    return ManifestUnit(key=unit.key, arm=unit.arm, point=dict(unit.point), seeds=list(unit.takes))


def manifest_of(plan: Plan, options: Options) -> Manifest:
    """A run of this plan as it is written down before it begins."""
    now = datetime.datetime.now(datetime.UTC)
    request, study = plan.request, plan.study
    check_run_name(options.name)
    return Manifest(
        id=f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}",
        kind=options.kind,
        name=options.name,
        study=study.name,
        preset=request.preset,
        set=dict(request.overrides),
        point=dict(request.point),
        seeds=request.seeds,
        first_seed=request.first_seed,
        preset_seeds=study.preset(request.preset).seeds,
        asked_arms=request.arms,
        arms=sorted({unit.arm for unit in plan.units}),
        skipped=plan.skipped,
        device=", ".join(sorted({unit.device for unit in plan.units} or {request.device})),
        params=study.resolve(request.preset, request.overrides).model_dump(mode="json"),
        settings={
            setting: study.resolve(request.preset, request.overrides, setting).model_dump(mode="json")
            for setting in study.settings
        },
        data=plan.data,
        units=[_listed(unit) for unit in plan.units],
        code={arm: code.source for arm, code in plan.codes.items() if arm not in plan.skipped},
        started=now.isoformat(timespec="seconds"),
        **environment(request.device),  # type: ignore[arg-type]
    )
