"""Sending units to where they are computed, and hearing of them: in this process, or on joblib's workers."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import joblib

from .backends import default_jobs, one_thread, stop_workers
from .clusters import Held, Workers, joblib_backend
from .events import Advanced, Event, Listener, Measured, Said
from .execute import Outcome, Place, execute, execute_in_worker
from .interrupts import interrupts_wait, workers_start
from .manifest import Kind
from .planning import Plan
from .store import Store
from .units import Unit

# Starting workers costs a few seconds of importing torch each; a plan cheaper than this runs in process.
_WORTH_WORKERS = 30.0
# joblib's, loky's and ray's own classes for it, by name: where they live has moved between releases.
_KILLED = "the process that computed it was killed (is there enough memory?)"
_DEATHS = {
    *("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker"),
    *("ActorDiedError", "RayActorError", "ActorUnavailableError", "WorkerCrashedError", "NodeDiedError"),
    *("OwnerDiedError", "ObjectLostError"),
}


@dataclass(frozen=True)
class Options:
    """How a run is carried out and what it is called, which changes nothing in its table. ``held`` is a backend that
    stays open from one plan to the next."""

    jobs: int | None = None
    backend: str = "loky"
    address: str | None = None
    outside: str | None = None
    name: str = ""
    kind: Kind = "run"
    held: Held | None = None


class WorkerDied(Exception):
    """A process that computed units is gone, and they with it."""


def outcomes(
    units: Iterator[Unit], plan: Plan, count: int, store: Store, options: Options, tell: Listener
) -> Generator[Outcome, None, None]:
    """The outcomes of units, in whatever order they finish. A worker that dies costs its units a second attempt, each
    alone and after all others, so that the one that kills workers is known; that one fails."""
    first = next(units, None)
    if first is None:
        return  # no cluster is opened, and no job waits in a queue, for nothing
    units = itertools.chain([first], units)
    jobs = jobs_for(plan, count, options)
    if jobs == 1 and options.backend == "loky":
        with one_thread():
            for unit in units:
                yield execute(unit, _in_process(unit, store, options, tell))
        return
    place = Place(options.outside, store.checkpoints.absolute(), notes=store.progress.absolute())
    flights = _Flights(place, store.progress, tell, loky=options.backend == "loky")
    lost: list[Unit] = []
    with _opened(plan, jobs, options, tell) as workers:
        rest = _Shared(units)
        while True:
            try:
                yield from flights.fly(rest, workers.count())
                break
            except WorkerDied:
                lost += flights.lost()
                tell(Said(f"a worker died with {len(lost)} units, which are tried again; the others go on"))
                workers.renew()
        for unit in lost:
            try:
                yield from flights.fly(_Shared([unit]), 1)
            except WorkerDied:
                yield Outcome(unit, None, 0.0, error=_KILLED)
                workers.renew()


def _opened(plan: Plan, jobs: int, options: Options, tell: Listener) -> contextlib.AbstractContextManager[Workers]:
    held = options.held if options.backend != "loky" else None  # loky keeps its workers by itself
    most = jobs_for(plan, held.most, options) if held else jobs
    backend = joblib_backend(options.backend, most, options.address, plan.request.device, tell)
    return contextlib.nullcontext(held.open(backend)) if held else backend


class _Shared:
    """Units that are taken from several threads, and again by those who come after a flight that broke off."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._units = iter(units)
        self._lock = threading.Lock()

    def next(self, wanted: Callable[[], bool]) -> Unit | None:
        with self._lock:
            return next(self._units, None) if wanted() else None


class _Flights:
    """Units on joblib's workers, one set of workers after another."""

    def __init__(self, place: Place, progress: Path, tell: Listener, *, loky: bool) -> None:
        self._place = place
        self._loky = loky
        self._progress = progress
        self._tell = tell
        self._flying: dict[str, Unit] = {}

    def lost(self) -> list[Unit]:
        lost = list(self._flying.values())
        self._flying.clear()
        return lost

    def fly(self, units: _Shared, jobs: int) -> Iterator[Outcome]:
        first = units.next(lambda: True)
        if first is None:
            return
        self._flying[first.key] = first  # also where no worker starts
        over = threading.Event()
        work = joblib.delayed(execute_in_worker)

        def dispatched() -> Iterator[object]:
            unit: Unit | None = first
            while unit is not None:
                self._flying[unit.key] = unit
                yield work(unit, self._place)
                unit = units.next(lambda: not over.is_set())

        # One worker of loky's is this process itself.
        workers = max(2, jobs) if self._loky else jobs
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch=jobs, batch_size=1)
        with _listening(self._progress, self._flying, self._tell):
            try:
                with workers_start():  # at the first dispatch
                    found = parallel(dispatched())
                for outcome in found:
                    self._flying.pop(outcome.unit.key, None)
                    yield outcome
            except Exception as error:
                over.set()
                if type(error).__name__ not in _DEATHS:
                    raise
                stop_workers()
                raise WorkerDied from error
            except BaseException:
                over.set()
                stop_workers()
                with contextlib.suppress(BaseException), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that units were at work is no advice to anybody
                    found.close()
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


def jobs_for(plan: Plan, count: int, options: Options) -> int:
    """Numbers of jobs change the time a run takes and nothing in its table. On a GPU one is the rule; who asks for more
    gets them: units of small networks leave it waiting for the processor. A cluster has its own number, found there,
    and 0 stands for it here."""
    if options.jobs is not None:
        return max(1, min(options.jobs, count))
    if options.address is not None:
        return 0
    if plan.request.device == "cuda" or count <= 1:
        return 1
    seconds = plan.study.preset(plan.request.preset).seconds
    return min(default_jobs(), count) if seconds > _WORTH_WORKERS else 1
