"""The page of one study: everything its template needs, worked out beforehand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

from markupsafe import Markup

from assay.lab import Finding, Study, UserError, results
from assay.lab.claims import Verdict
from assay.lab.console import MARKS
from assay.lab.store import Store

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
    manifest: dict[str, Any]
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
    def corrections(self) -> list[Row]:
        return [row for row in (*self.claims, *self.controls) if row.finding.claim.printed is not None]

    @property
    def smoke(self) -> bool:
        return bool(self.manifest["preset"] == "smoke")

    @property
    def broken(self) -> list[exhibits.Shown]:
        return [shown for shown in (*self.figures, *self.tables) if shown.error is not None]


def assemble(study: Study, store: Store, manifest: dict[str, Any], folder: Folder, formats: Iterable[str]) -> Page:
    measurements = results.load(store, study, manifest)
    found = study.judge(measurements, preset=manifest["preset"], overrides=manifest["set"])
    rows = [_row(finding) for finding in found]
    return Page(
        study=study,
        manifest=manifest,
        file=f"{slug(study.name)}.html",
        claims=[row for row in rows if not row.finding.claim.control],
        controls=[row for row in rows if row.finding.claim.control],
        notices=_notices(study, store, manifest),
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
    return [Tally(v, _kind(v), MARKS[v][0], counts[v]) for v in VERDICTS if counts[v]]  # type: ignore[index]


def _row(finding: Finding) -> Row:
    claim, judgement = finding.claim, finding.judgement
    paper = number(claim.paper, 6) if isinstance(claim.paper, (int, float)) else claim.paper or ""
    return Row(
        finding,
        f"claim-{slug(claim.id)}",
        MARKS[judgement.verdict][0],
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


def _facts(manifest: dict[str, Any]) -> str:
    count = results.seeds_used(manifest)
    seeds = f"{count} seed{'' if count == 1 else 's'}"
    parts = [results.preset_words(manifest), seeds, manifest["device"]]
    parts.append(date(manifest["started"]))
    if manifest.get("seconds") is not None:
        parts.append(duration(manifest["seconds"]))
    return " · ".join(parts)


def _parameters_changed(study: Study, manifest: dict[str, Any]) -> bool:
    """Whether the same command would now run with other parameters. What is 'auto' was resolved by the machine that
    ran it, and another machine's answer is no change of the study."""
    ran, asked = manifest["params"], manifest["set"]
    defaults = {name: field.default for name, field in study.model.model_fields.items()}
    try:
        given = {**defaults, **study.preset(manifest["preset"]).values, **asked}
        resolved = {name: ran[name] for name, value in given.items() if value == "auto" and name in ran}
        return bool(ran != study.resolve(manifest["preset"], {**asked, **resolved}).model_dump(mode="json"))
    except UserError:  # a parameter was renamed or no longer takes the value
        return True


def _notices(study: Study, store: Store, manifest: dict[str, Any]) -> list[str]:
    """What a reader must know before trusting the page."""
    notices = []
    if missing := results.incomplete(store, manifest):
        total = len(manifest["units"])
        notices.append(f"{missing} of {total} units of this run are not stored, so claims and figures may lack them.")
    notices += [f"{failure['unit']} failed: {failure['error']}" for failure in manifest.get("failures", [])]
    if _parameters_changed(study, manifest):
        notices.append("The study's parameters have changed since this run; run it again before quoting it.")
    elif results.code_changed(study, manifest):
        notices.append("The study's code has changed since this run; run it again before quoting it.")
    return notices
