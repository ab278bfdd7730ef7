"""How a run goes, for a person: a bar on a terminal, a line per unit elsewhere."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from assay.lab.events import Advanced, Event, Measured, Said, Started, UnitDone


class ConsoleProgress:
    """Listens to a run: a bar on a terminal; elsewhere one line per unit. Always on standard error."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._live = console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[latest]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task(title, total=None, latest="")
        self._total = self._wanted = self._count = self._computed = 0
        self._shares: dict[str, float] = {}
        self._latest = ""
        self._started = time.perf_counter()
        self._lock = threading.Lock()  # a run's workers are heard from another thread

    def __enter__(self) -> ConsoleProgress:
        if self._live:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        with self._lock:
            match event:
                case Started(total=total, stored=stored):
                    self._total += total  # a sweep starts several times
                    self._wanted += total - stored
                    self._bar.update(self._task, total=self._total)
                case Measured(unit=unit, metric=metric, value=value):
                    self._show(f"{unit.split(' seed')[0]}: {metric} {value:.4g}")
                case Advanced(unit=unit, done=done, total=total):
                    self._advance(unit, done / total if total else 1.0)
                case UnitDone():
                    self._done(event)
                case Said(sentence=sentence):
                    self._console.print(f"{self._title}: {sentence}", highlight=False, markup=False, soft_wrap=True)

    def _show(self, latest: str) -> None:
        self._latest = latest
        if self._live:
            self._bar.update(self._task, latest=latest)

    def _advance(self, unit: str, share: float) -> None:
        self._shares[unit] = share
        if self._live:
            self._bar.update(self._task, completed=self._count + sum(self._shares.values()))
            self._show(f"{unit.split(' seed')[0]}: {share:.0%}")

    def _done(self, event: UnitDone) -> None:
        self._count += 1
        if self._count > self._total:  # a unit that ran out of memory became two
            self._total = self._count
            self._bar.update(self._task, total=self._total)
        self._computed += not event.reused
        self._shares.pop(event.unit.label, None)
        if self._live and event.reused:
            self._bar.tasks[0].completed += 1  # not an advance: reading a stored unit says nothing of the speed
        elif self._live:
            self._bar.update(self._task, completed=self._count + sum(self._shares.values()))
        elif not event.reused:
            elapsed = time.perf_counter() - self._started
            left = elapsed / self._computed * max(0, self._wanted - self._computed)
            line = f"{self._title} {self._count}/{self._total} {event.unit.label} {event.seconds:.1f} s"
            latest = f"; {self._latest.rpartition(': ')[2]}" if self._latest else ""
            self._console.print(
                f"{line}, about {left:.0f} s left{latest}", highlight=False, markup=False, soft_wrap=True
            )
