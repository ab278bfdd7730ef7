"""The page of one study: everything its template needs, worked out beforehand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from markupsafe import Markup

from assay.lab import Finding, Manifest, Run, Study
from assay.lab.confirmation import confirmed
from assay.lab.stored import MARKS
from assay.lab.verdicts import Verdict

from . import exhibits, intervals, overview
from .folder import Folder
from .numbers import date, duration, number, slug

VERDICTS: tuple[str, ...] = get_args(Verdict)
_ONE = {"holds": "holds", "fails": "fails"}
_MANY = {"holds": "hold", "fails": "fail"}


@dataclass(frozen=True)
class Row:
    """A claim with its verdict, as the verdict table shows it."""

    finding: Finding
    anchor: str
    mark: str
    kind: str
    drawing: Markup
    words: str
    criterion: str
    paper: str


@dataclass(frozen=True)
class Tally:
    verdict: str
    kind: str
    mark: str
    count: int

    @property
    def text(self) -> str:
        return f"{self.count} {(_ONE if self.count == 1 else _MANY).get(self.verdict, self.verdict)}"


@dataclass(frozen=True)
class Page:
    study: Study
    manifest: Manifest
    file: str
    claims: list[Row]
    controls: list[Row]
    notices: list[str]
    facts: str
    figures: list[exhibits.Figure]
    tables: list[exhibits.Table]
    arms: list[overview.ArmRow]
    choices: list[overview.Choice]
    parameters: list[overview.Parameter]
    settings: dict[str, list[overview.Parameter]]
    run: dict[str, str]

    @property
    def headlines(self) -> list[Row]:
        return [row for row in (*self.claims, *self.controls) if row.finding.claim.headline]

    @property
    def others(self) -> list[Row]:
        """The claims that are no headlines."""
        return [row for row in self.claims if not row.finding.claim.headline]

    @property
    def corrections(self) -> list[Row]:
        return [row for row in (*self.claims, *self.controls) if row.finding.claim.printed is not None]

    @property
    def smoke(self) -> bool:
        return self.manifest.preset == "smoke"

    @property
    def broken(self) -> list[exhibits.Shown]:
        return [shown for shown in (*self.figures, *self.tables) if shown.error is not None]


def assemble(run: Run, folder: Folder, formats: Iterable[str]) -> Page:
    study, manifest, measurements = run.study, run.manifest, run.results
    # Judged here and not read back: the drawings need the criterion itself, not its words.
    found = study.judge(measurements, manifest, looks=run.looks)
    if (fresh := run.fresh) is not None:
        found = confirmed(found, fresh.judged)
    rows = [_row(finding) for finding in found]
    return Page(
        study=study,
        manifest=manifest,
        file=f"{slug(study.name)}.html",
        claims=[row for row in rows if not row.finding.claim.control],
        controls=[row for row in rows if row.finding.claim.control],
        notices=[*_notices(run), *_broken(found)],
        facts=_facts(manifest),
        figures=exhibits.figures(study, measurements, folder, formats),
        tables=exhibits.tables(study, measurements, folder),
        arms=overview.arms(study, measurements, manifest),
        choices=overview.choices(study, measurements, manifest),
        parameters=overview.parameters(study, manifest),
        settings=overview.settings(study, measurements, manifest),
        run=overview.run_facts(study, manifest),
    )


def tally(rows: Iterable[Row]) -> list[Tally]:
    """How many of each verdict, the absent ones left out."""
    counts = Counter(row.finding.judgement.verdict for row in rows)
    return [Tally(v, _kind(v), MARKS[v], counts[v]) for v in VERDICTS if counts[v]]  # type: ignore[index]


def _row(finding: Finding) -> Row:
    claim, judgement = finding.claim, finding.judgement
    paper = number(claim.paper, 6) if isinstance(claim.paper, (int, float)) else claim.paper or ""
    return Row(
        finding,
        f"claim-{slug(claim.id)}",
        MARKS[judgement.verdict],
        _kind(judgement.verdict),
        intervals.draw(judgement),
        intervals.words(judgement),
        _unbroken(judgement.criterion),
        paper,
    )


def _unbroken(criterion: str) -> str:
    """Keeps a relation and its number on one line."""
    return re.sub(
        r"([≥≤<>]|\bin) |(?<=\d), (?=[^ ]+[\])])", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), criterion
    )


def _kind(verdict: str) -> str:
    """The verdict as the name of a style."""
    return verdict.replace(" ", "-")


def _facts(manifest: Manifest) -> str:
    count = manifest.seeds_used
    seeds = f"{count} seed{'' if count == 1 else 's'}"
    on = [f"data: {', '.join(manifest.data)}"] if manifest.data else []
    parts = [manifest.preset_words, *on, seeds, manifest.device]
    parts.append(date(manifest.started))
    if manifest.seconds is not None:
        parts.append(duration(manifest.seconds))
    return " · ".join(parts)


def _broken(found: Iterable[Finding]) -> list[str]:
    return [f"Claim {f.claim.id} could not be judged: {f.judgement.error}" for f in found if f.judgement.error]


def _notices(run: Run) -> list[str]:
    """What a reader must know before trusting the page."""
    notices, manifest = [], run.manifest
    if missing := run.missing:
        total = len(manifest.units)
        notices.append(f"{missing} of {total} units of this run are not stored, so claims and figures may lack them.")
    notices += [f"{failure.unit} failed: {failure.error}" for failure in manifest.failures]
    if run.parameters_changed:
        notices.append("The study's parameters have changed since this run; run it again before quoting it.")
    elif run.code_changed:
        notices.append("The study's code has changed since this run; run it again before quoting it.")
    return notices
