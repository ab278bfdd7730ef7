"""Running a plan: stored units are skipped, the rest runs on joblib, and every finished unit is stored at once."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import joblib

from .backends import (
    check_backend,
    check_device,
    default_jobs,
    has_device,
    interrupts_wait,
    joblib_backend,
    one_thread,
    stop_workers,
)
from .events import Advanced, Event, Finished, Listener, Measured, Said, Started, UnitDone
from .execute import Outcome, Place, environment, execute, execute_in_worker
from .files import DamagedUnit
from .manifest import Failure, Kind, Manifest, ManifestUnit, check_run_name
from .planning import Plan, Unit
from .reasons import NOTHING_YET, reasons
from .store import Lock, Store

# Starting workers costs a few seconds of importing torch each; a plan cheaper than this runs in process.
_WORTH_WORKERS = 30.0


@dataclass(frozen=True)
class Options:
    jobs: int | None = None
    backend: str = "loky"
    address: str | None = None
    outside: str | None = None
    name: str = ""
    kind: Kind = "run"


@dataclass
class RunResult:
    manifest: Manifest
    computed: int = 0
    reused: int = 0
    failures: list[Outcome] = field(default_factory=list)


def run(plan: Plan, store: Store, options: Options, tell: Listener) -> RunResult:
    """Carry out a plan. Killing the process at any moment loses at most the units in flight."""
    _make_ready(plan, store, options)
    result = RunResult(manifest_of(plan, options))
    store.write_manifest(result.manifest)
    tell(Started(plan.study.name, len(plan.units), len(plan.to_reuse), result.manifest.id))
    for arm, reason in plan.skipped.items():
        tell(Said(f"arm '{arm}' is left out: {reason}"))
    for sentence in _why(reasons(plan, store)):
        tell(Said(sentence))
    started = time.perf_counter()
    taken: dict[str, Unit] = {}
    status = "interrupted"
    try:
        waiting = _pass(plan, plan.units, store, options, tell, result, taken, wait=False)
        # What another run was computing meanwhile is either stored by now or ours to compute.
        _pass(plan, waiting, store, options, tell, result, taken, wait=True)
        status = "failed" if result.failures else "complete"
    finally:
        manifest = result.manifest
        if status == "complete" and not all(store.has_name(taken.get(_wanted(u), u).key) for u in plan.units):
            status = "interrupted"  # somebody took units away meanwhile
        manifest.failures = [Failure(unit=o.unit.label, error=o.error, trace=o.trace) for o in result.failures]
        manifest.seconds = round(time.perf_counter() - started, 3)
        manifest.status, manifest.computed, manifest.reused = status, result.computed, result.reused  # type: ignore[assignment]
        manifest.units = [_listed(taken.get(_wanted(unit), unit)) for unit in plan.units]
        store.write_manifest(manifest)
        tell(Finished(status, manifest.seconds))
    return result


def compute(plan: Plan, store: Store, options: Options, tell: Listener) -> RunResult:
    """Compute what is missing of a plan and store it, as ``run`` does, with no run written down."""
    _make_ready(plan, store, options)
    result, taken = RunResult(manifest_of(plan, options)), dict[str, Unit]()
    tell(Started(plan.study.name, len(plan.units), len(plan.to_reuse)))
    waiting = _pass(plan, plan.units, store, options, tell, result, taken, wait=False)
    _pass(plan, waiting, store, options, tell, result, taken, wait=True)
    return result


def _make_ready(plan: Plan, store: Store, options: Options) -> None:
    check_backend(options.backend)
    device = plan.request.device
    # What is stored needs no device: a folder from a machine with a GPU is judged and joined anywhere.
    if not has_device(device) and not all(store.whole(unit.key) for unit in plan.units):
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


def _pass(
    plan: Plan,
    units: list[Unit],
    store: Store,
    options: Options,
    tell: Listener,
    result: RunResult,
    taken: dict[str, Unit],
    *,
    wait: bool,
) -> list[Unit]:
    """Compute what is neither stored nor locked; returns the units that another run holds."""
    held: list[Unit] = []
    locks: dict[str, Lock] = {}

    def claimed() -> Iterator[Unit]:
        for unit in units:
            lock = store.try_lock(unit.key, wait=wait)
            if lock is None:
                held.append(unit)
                continue
            locks[unit.key] = lock
            if _stored(store, unit, tell):
                locks.pop(unit.key).release()
                result.reused += 1
                tell(UnitDone(unit, reused=True, seconds=0.0))
                continue
            fresh = unit.anew()
            taken[_wanted(unit)] = fresh
            if fresh.key != unit.key:
                locks.pop(unit.key).release()
                lock = store.try_lock(fresh.key, wait=True)
                assert lock is not None
                locks[fresh.key] = lock
            yield fresh

    try:
        for outcome in _outcomes(claimed(), plan, len(units), store, options, tell):
            if outcome.payload is None:
                result.failures.append(outcome)
                tell(Said(f"{outcome.unit.label} failed: {outcome.error}"))
            else:
                store.write(outcome.unit.key, outcome.payload)
                store.clear_checkpoints(outcome.unit.key)
                result.computed += 1
                if outcome.latest:
                    tell(Measured(outcome.unit.label, *outcome.latest))
            tell(UnitDone(outcome.unit, reused=False, seconds=outcome.seconds, error=outcome.error))
            locks.pop(outcome.unit.key).release()
    finally:
        for lock in locks.values():
            lock.release()
    return held


def _outcomes(
    units: Iterator[Unit], plan: Plan, count: int, store: Store, options: Options, tell: Listener
) -> Iterator[Outcome]:
    jobs = _jobs(plan, min(count, len(plan.to_compute) or 1), options)
    if jobs == 1 and options.backend == "loky":
        with one_thread():
            for unit in units:
                yield execute(unit, _in_process(unit, store, options, tell))
        return
    place = Place(options.outside, store.checkpoints.absolute(), notes=store.progress.absolute())
    flying: dict[str, Unit] = {}

    def dispatched() -> Iterator[object]:
        for unit in units:
            flying[unit.key] = unit
            yield work(unit, place)

    work = joblib.delayed(execute_in_worker)
    with joblib_backend(options.backend, jobs, options.address), _listening(store.progress, flying, tell):
        if joblib.parallel.get_active_backend()[0].supports_return_generator:
            parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch=jobs, batch_size=1)
            with interrupts_wait():  # workers start at the first dispatch
                outcomes = parallel(dispatched())
            yield from _watched(outcomes, flying)
            return
        # Ray's backend returns whole lists only: go in waves, so that a killed run loses one wave at most.
        while wave := list(itertools.islice(dispatched(), 2 * jobs)):
            yield from joblib.Parallel(batch_size=1)(wave)


def _watched(outcomes: Iterator[Outcome], flying: dict[str, Unit]) -> Iterator[Outcome]:
    """The outcomes of workers. One that dies takes its units with it, and they are named; an interrupt stops all."""
    try:
        for outcome in outcomes:
            flying.pop(outcome.unit.key, None)
            yield outcome
    except Exception as error:
        # joblib's and loky's own classes for it, by name: where they live has moved between releases.
        if type(error).__name__ not in ("TerminatedWorkerError", "BrokenProcessPool"):
            raise
        stop_workers()
        for unit in list(flying.values()):
            yield Outcome(unit, None, 0.0, error="the process that computed it was killed (is there enough memory?)")
    except BaseException:
        stop_workers()
        with contextlib.suppress(BaseException):
            outcomes.close()  # type: ignore[attr-defined]
        raise


def _in_process(unit: Unit, store: Store, options: Options, tell: Listener) -> Place:
    label = unit.label
    return Place(
        options.outside,
        store.checkpoints,
        watch=lambda metric, value: tell(Measured(label, metric, value)),
        advance=lambda done, total: tell(Advanced(label, done, total)),
    )


@contextlib.contextmanager
def _listening(folder: Path, flying: dict[str, Unit], tell: Listener) -> Iterator[None]:
    """Pass on what workers leave word of, once a second, from a thread of its own."""
    stop = threading.Event()

    def listen() -> None:
        while not stop.wait(1.0):
            for unit in list(flying.values()):
                for event in _progress(folder / f"{unit.key}.progress", unit):
                    tell(event)

    thread = threading.Thread(target=listen, daemon=True)
    with interrupts_wait():  # an interrupt is the main thread's to hear
        thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for unit in list(flying.values()):
            (folder / f"{unit.key}.progress").unlink(missing_ok=True)


def _progress(path: Path, unit: Unit) -> Iterator[Event]:
    try:
        word = json.loads(path.read_text())
    except (OSError, ValueError):
        return
    if "metric" in word:
        yield Measured(unit.label, word["metric"], word["value"])
    if "total" in word:
        yield Advanced(unit.label, word["done"], word["total"])


def _jobs(plan: Plan, count: int, options: Options) -> int:
    """Numbers of jobs change the time a run takes and nothing in its table. On a GPU one is the rule; who asks for more
    gets them: units of small networks leave it waiting for the processor."""
    if options.jobs is not None:
        return max(1, min(options.jobs, count))
    if plan.request.device == "cuda" or count <= 1:
        return 1
    seconds = plan.study.preset(plan.request.preset).seconds
    return min(default_jobs(), count) if seconds > _WORTH_WORKERS else 1


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
        device=request.device,
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
