"""Verdicts in the terminal: headlines, all claims, what stood on fresh seeds."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.cli.console import STYLES, TABLE, interval, number, paragraph, print_rows
from assay.cli.options import say
from assay.lab.stored import MARKS, Findings

if TYPE_CHECKING:
    from assay.lab.confirmation import Confirmation
    from assay.lab.findings import Finding
    from assay.lab.verdicts import Judgement


def print_claims(
    console: Console,
    found: Findings,
    title: str,
    *,
    every: bool = False,
    verdict: str | None = None,
    id: Sequence[str] = (),
) -> None:
    """The headlines with one line of counts for the rest, or the claims that were asked for."""
    headlines = [finding for finding in found if finding.claim.headline]
    if every or verdict or id or not headlines:
        print_findings(console, asked_for(found, verdict=verdict, id=id), title)
        return
    console.print(title, markup=False)
    for finding in headlines:
        _headline(console, finding)
    rest = Findings(finding for finding in found if not finding.claim.headline)
    if rest:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in rest.counts.items())
        lost = sum(finding.confirmed is False for finding in rest)
        unconfirmed = f"; {lost} did not stand on fresh seeds" if lost else ""
        console.print(f"{len(rest)} more claims: {counts}{unconfirmed} (--all, --verdict, --id)", markup=False)


def asked_for(found: Iterable[Finding], *, verdict: str | None, id: Sequence[str] = ()) -> list[Finding]:
    """Findings with a verdict and one of these identifiers, or whose identifier begins so: C3 means C3 and C3a, not
    C30. Without identifiers all are meant."""

    wanted = [f for f in found if verdict is None or f.judgement.verdict == verdict]
    return [f for f in wanted if not id or any(means(each, f.claim.id) for each in id)]


def means(id: str, known: str) -> bool:
    """Whether an identifier, or the beginning of one, means this claim."""
    return known == id or (known.startswith(id) and not known[len(id) :][0].isdigit())


def _headline(console: Console, finding: Finding) -> None:
    """Two or three lines: the statement, then what was measured and what decided it."""
    judgement = finding.judgement
    mark = Text(f"{MARKS[judgement.verdict]} ", style=STYLES[judgement.verdict])
    lines = textwrap.wrap(f"{finding.claim.id} {finding.claim.statement}", console.width - 2)
    console.print(mark + Text(lines[0]))
    for line in lines[1:]:
        console.print(f"  {line}", markup=False, highlight=False)
    told = [_measured(judgement), _confirmed(finding), _criterion(judgement), _decided(judgement), judgement.note]
    _fitting(console, [part for part in told if part])


def _fitting(console: Console, parts: list[str]) -> None:
    """As many of the parts as one line has room for, the first in any case."""
    line = parts[0] if parts else ""
    for part in parts[1:]:
        if len(line) + len(part) + 4 <= console.width:
            line = f"{line}; {part}"
    if line:
        paragraph(console, line, 2, "dim")


def _measured(judgement: Judgement) -> str:
    seeds = f"({judgement.seeds} seeds)" if judgement.seeds else "(exact)" if judgement.method == "exact" else ""
    if judgement.method == "equal":
        seeds = f"({judgement.decided_by})"
    shown = (number(judgement.estimate), interval(judgement.low, judgement.high), seeds)
    return " ".join(part for part in shown if part) if not math.isnan(judgement.estimate) else ""


def _decided(judgement: Judgement) -> str:
    """What decided it, where that is not said beside the number."""
    return "" if judgement.method == "equal" else judgement.decided_by


def _confirmed(finding: Finding) -> str:
    return {True: "confirmed", False: "not confirmed", None: ""}[finding.confirmed]


def print_findings(console: Console, found: Iterable[Finding], title: str) -> None:
    """Verdicts: a table where it reads well, else a paragraph per claim."""
    found = list(found)
    if not found:
        console.print(f"{title}: no claims", markup=False)
        return
    if console.width >= TABLE:
        console.print(_verdict_table(found, title))
        return
    console.print(title, markup=False)
    for finding in found:
        judgement = finding.judgement
        mark = f"{MARKS[judgement.verdict]} {judgement.verdict}"
        head = Text(f"{finding.claim.id:<5}") + Text(mark, style=STYLES[judgement.verdict])
        console.print(head)
        paragraph(console, finding.claim.statement, 5)
        told = (
            *(_measured(judgement), _criterion(judgement), _decided(judgement)),
            *(judgement.note, _confirmed(finding)),
        )
        paragraph(console, "; ".join(part for part in told if part), 5, "dim")


def _verdict_table(found: Iterable[Finding], title: str) -> Table:
    table = Table(title=title, title_justify="left", expand=False)
    table.add_column("claim", no_wrap=True)
    table.add_column("statement", ratio=4, min_width=24)
    table.add_column("verdict", no_wrap=True)
    table.add_column("estimate", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    table.add_column("criterion", ratio=3, min_width=16)
    table.add_column("seeds", justify="right")
    table.add_column("what decides", ratio=2, min_width=14)
    for finding in found:
        judgement = finding.judgement
        decided = "; ".join(part for part in (judgement.decided_by, judgement.note, _confirmed(finding)) if part)
        table.add_row(
            finding.claim.id,
            Text(finding.claim.statement),
            Text(f"{MARKS[judgement.verdict]} {judgement.verdict}", style=STYLES[judgement.verdict]),
            number(judgement.estimate),
            interval(judgement.low, judgement.high),
            Text(_criterion(judgement)),
            str(judgement.seeds or judgement.method.replace("student", "")),
            Text(decided),
        )
    return table


def print_confirmation(console: Console, found: Confirmation) -> None:
    """What stands on fresh seeds, and every verdict that does not."""
    rows = [
        [
            each.first.claim.id,
            each.first.claim.statement,
            f"{each.first.judgement.verdict} {number(each.first.judgement.estimate)}",
            f"{each.second.judgement.verdict} {number(each.second.judgement.estimate)}",
        ]
        for each in found.lost
    ]
    if rows:
        print_rows(console, "verdicts that did not stand", ["claim", "statement", "first", "fresh seeds"], rows)
    console.print(found.summary, markup=False, soft_wrap=True)


def say_broken(found: Findings) -> bool:
    """One line for each claim whose code is broken; whether there is one."""
    for finding in found.broken:
        say(f"claim {finding.claim.id} of {finding.study} is broken: {finding.judgement.error}")
    return bool(found.broken)


def _criterion(judgement: Judgement) -> str:
    words = judgement.error
    if judgement.criterion and words:
        return f"{judgement.criterion} ({words})"
    return judgement.criterion or words
