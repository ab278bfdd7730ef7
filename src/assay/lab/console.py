"""What a person sees in the terminal: progress and the verdict table."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from .claims import Finding, Judgement
from .plan import Unit

MARKS = {"holds": ("✓", "green"), "fails": ("✗", "red"), "undecided": ("?", "yellow"), "not run": ("–", "dim")}


class ConsoleProgress:
    """A bar on a terminal; elsewhere one line per unit. Always on standard error."""

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
        self._total = self._count = self._computed = 0
        self._latest = ""
        self._started = time.perf_counter()

    def __enter__(self) -> ConsoleProgress:
        if self._live:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._bar.stop()

    def start(self, total: int) -> None:
        self._total = total
        self._bar.update(self._task, total=total)

    def latest(self, label: str, metric: str, value: float) -> None:
        self._latest = f"{label.split(' seeds')[0]}: {metric} {value:.4g}"
        if self._live:
            self._bar.update(self._task, latest=self._latest)

    def done(self, unit: Unit, *, stored: bool, seconds: float) -> None:
        self._count += 1
        self._computed += not stored
        if self._live and stored:
            self._bar.tasks[0].completed += 1  # not an advance: reading a stored unit says nothing of the speed
        elif self._live:
            self._bar.update(self._task, advance=1)
        elif not stored:
            elapsed = time.perf_counter() - self._started
            left = elapsed / self._computed * (self._total - self._count)
            line = f"{self._title} {self._count}/{self._total} {unit.label} {seconds:.1f} s, about {left:.0f} s left"
            self._console.print(f"{line}; {self._latest}", highlight=False, markup=False, soft_wrap=True)

    def say(self, sentence: str) -> None:
        self._console.print(f"{self._title}: {sentence}", highlight=False, markup=False, soft_wrap=True)


def verdict_table(findings: Sequence[Finding], title: str) -> Table:
    table = Table(title=title, title_justify="left", expand=False)
    table.add_column("claim", no_wrap=True)
    table.add_column("statement", ratio=4, min_width=24)
    table.add_column("verdict", no_wrap=True)
    table.add_column("estimate", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    table.add_column("criterion", ratio=3, min_width=16)
    table.add_column("seeds", justify="right")
    for finding in findings:
        judgement = finding.judgement
        mark, style = MARKS[judgement.verdict]
        table.add_row(
            finding.claim.id,
            Text(finding.claim.statement),
            Text(f"{mark} {judgement.verdict}", style=style),
            number(judgement.estimate),
            interval(judgement.low, judgement.high),
            Text(_criterion(judgement)),
            str(judgement.seeds or ""),
        )
    return table


def _criterion(judgement: Judgement) -> str:
    if judgement.criterion and judgement.reason:
        return f"{judgement.criterion} ({judgement.reason})"
    return judgement.criterion or judgement.reason


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"


def interval(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"[{low:.4g}, {high:.4g}]"
