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
from .study import Study

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


def study_tables(study: Study) -> list[Table]:
    """What can be asked of a study: its arms for ``--arms``, its parameters and settings for ``--set``, its claims."""
    arms = Table("arm", "what it does", "parameters", title="arms", title_justify="left")
    for arm in study.arms.values():
        usual = "" if arm.name in study.usual_arms("laptop") else " (only when asked for)"
        arms.add_row(arm.name, Text(arm.description + usual), Text(", ".join(arm.uses) if arm.uses else "all"))
    presets = {name: study.resolve(name, {}).model_dump(mode="json") for name in study.presets}
    parameters = Table("parameter", *presets, "meaning", title="parameters", title_justify="left")
    for name, described in study.model.model_fields.items():
        values = [_brief(chosen[name]) for chosen in presets.values()]
        parameters.add_row(name, *(Text(value) for value in values), Text(described.description or ""))
    settings = Table("setting", "fixes", title="settings", title_justify="left")
    for name, fixed in study.settings.items():
        settings.add_row(name, Text(", ".join(f"{parameter}={_brief(value)}" for parameter, value in fixed.items())))
    claims = Table("claim", "statement", "source", title="claims", title_justify="left")
    for claim in study.claims.values():
        claims.add_row(claim.id, Text(claim.statement), Text(claim.source))
    return [table for table in (arms, parameters, settings, claims) if table.row_count]


def _brief(value: object) -> str:
    return ", ".join(_brief(part) for part in value) if isinstance(value, (list, tuple)) else str(value)


def _criterion(judgement: Judgement) -> str:
    if judgement.criterion and judgement.reason:
        return f"{judgement.criterion} ({judgement.reason})"
    return judgement.criterion or judgement.reason


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"


def interval(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"[{low:.4g}, {high:.4g}]"
