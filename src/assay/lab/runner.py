"""Running a plan: stored units are skipped, the rest runs on joblib, and every finished unit is stored at once."""

from __future__ import annotations

import datetime
import itertools
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from .backends import check_backend, check_device, default_jobs, has_device, joblib_backend
from .code_version import code_version
from .execute import Outcome, data_of, environment, execute
from .plan import Plan, Unit
from .store import DamagedUnit, Lock, Store
from .study import Study

# Starting workers costs a few seconds of importing torch each; a plan cheaper than this runs in process.
_WORTH_WORKERS = 30.0


class Progress(Protocol):
    """What a run tells the person who started it."""

    def start(self, total: int) -> None: ...
    def latest(self, label: str, metric: str, value: float) -> None: ...
    def done(self, unit: Unit, *, stored: bool, seconds: float) -> None: ...
    def say(self, sentence: str) -> None: ...


@dataclass(frozen=True)
class Options:
    jobs: int | None = None
    backend: str = "loky"
    address: str | None = None
    outside: str | None = None


@dataclass
class RunResult:
    manifest: dict[str, Any]
    computed: int = 0
    reused: int = 0
    failures: list[Outcome] = field(default_factory=list)


def run(plan: Plan, store: Store, options: Options, progress: Progress) -> RunResult:
    """Carry out a plan. Killing the process at any moment loses at most the units in flight."""
    check_backend(options.backend)
    device = plan.request.device
    # What is stored needs no device: a folder from a machine with a GPU is judged and joined anywhere.
    if not has_device(device) and not all(store.whole(unit.key) for unit in plan.units):
        check_device(device)
    store.prepare()
    store.sweep_leftovers()
    result = RunResult(_manifest(plan))
    store.write_manifest(result.manifest)
    progress.start(len(plan.units))
    for arm, reason in plan.skipped.items():
        progress.say(f"arm '{arm}' is left out: {reason}")
    started = time.perf_counter()
    try:
        waiting = _pass(plan, plan.units, store, options, progress, result, wait=False)
        # What another run was computing meanwhile is either stored by now or ours to compute.
        _pass(plan, waiting, store, options, progress, result, wait=True)
        status = "failed" if result.failures else "complete"
    except BaseException:
        status = "interrupted"
        raise
    finally:
        failures = [{"unit": o.unit.label, "error": o.error, "trace": o.trace} for o in result.failures]
        seconds = round(time.perf_counter() - started, 3)
        result.manifest.update(
            status=status, failures=failures, seconds=seconds, computed=result.computed, reused=result.reused
        )
        store.write_manifest(result.manifest)
    return result


def _pass(
    plan: Plan, units: list[Unit], store: Store, options: Options, progress: Progress, result: RunResult, *, wait: bool
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
            if _stored(store, plan.study, unit, progress):
                locks.pop(unit.key).release()
                result.reused += 1
                progress.done(unit, stored=True, seconds=0.0)
            else:
                yield unit

    try:
        for outcome in _outcomes(claimed(), plan, len(units), options, progress):
            if outcome.payload is None:
                result.failures.append(outcome)
                progress.say(f"{outcome.unit.label} failed: {outcome.error}")
            else:
                store.write(outcome.unit.key, outcome.payload)
                result.computed += 1
                if outcome.latest:
                    progress.latest(outcome.unit.label, *outcome.latest)
            progress.done(outcome.unit, stored=False, seconds=outcome.seconds)
            locks.pop(outcome.unit.key).release()
    finally:
        for lock in locks.values():
            lock.release()
    return held


def _outcomes(units: Iterator[Unit], plan: Plan, count: int, options: Options, progress: Progress) -> Iterator[Outcome]:
    jobs = _jobs(plan, count, options)
    if jobs == 1 and options.backend == "loky":
        for unit in units:
            label = unit.label
            yield execute(unit, options.outside, lambda metric, value, at=label: progress.latest(at, metric, value))  # type: ignore[misc]
        return
    import joblib

    work = joblib.delayed(execute)
    with joblib_backend(options.backend, jobs, options.address):
        if joblib.parallel.get_active_backend()[0].supports_return_generator:
            parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch=jobs, batch_size=1)
            yield from parallel(work(unit, options.outside) for unit in units)
            return
        # Ray's backend returns whole lists only: go in waves, so that a killed run loses one wave at most.
        while wave := list(itertools.islice(units, 2 * jobs)):
            yield from joblib.Parallel(batch_size=1)(work(unit, options.outside) for unit in wave)


def _jobs(plan: Plan, count: int, options: Options) -> int:
    """Numbers of jobs change the time a run takes and nothing in its table. On a GPU one is the rule; who asks for more
    gets them: units of small networks leave it waiting for the processor."""
    if options.jobs is not None:
        return max(1, min(options.jobs, count))
    if plan.request.device == "cuda" or count <= 1:
        return 1
    seconds = plan.study.preset(plan.request.preset).seconds
    return min(default_jobs(), count) if seconds > _WORTH_WORKERS else 1


def _stored(store: Store, study: Study, unit: Unit, progress: Progress) -> bool:
    try:
        if not store.has(unit.key):
            return False
        reason = _other_data(store, study, unit)
    except DamagedUnit as damage:
        reason = f"damaged: {damage}"
    if reason:
        progress.say(f"{reason}; it is computed again")
        store.discard(unit.key)
    return not reason


def _other_data(store: Store, study: Study, unit: Unit) -> str:
    """Why a stored unit is out of date although its address is the same: its data set has been exchanged since."""
    here = data_of(study, unit)
    there = store.read(unit.key).meta.get("data", {}) if here else {}
    changed = [name for name, hashed in here.items() if there.get(name, hashed) != hashed]
    return f"{unit.label} was computed from other files of {', '.join(changed)}" if changed else ""


def _manifest(plan: Plan) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC)
    request = plan.request
    return {
        "id": f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}",
        "study": plan.study.name,
        "preset": request.preset,
        "set": dict(request.overrides),
        "seeds": request.seeds,
        "preset_seeds": plan.study.preset(request.preset).seeds,
        "asked_arms": request.arms,
        "arms": sorted({unit.arm for unit in plan.units}),
        "skipped": plan.skipped,
        "device": request.device,
        "params": plan.study.resolve(request.preset, request.overrides).model_dump(mode="json"),
        "settings": {
            setting: plan.study.resolve(request.preset, request.overrides, setting).model_dump(mode="json")
            for setting in plan.study.settings
        },
        "units": [
            {"key": unit.key, "arm": unit.arm, "point": dict(unit.point), "seeds": list(unit.seeds)}
            for unit in plan.units
        ],
        "status": "running",
        "started": now.isoformat(timespec="seconds"),
        "code": code_version(plan.study.module),
        **environment(request.device),
    }
