"""The page of one study: everything its template needs, worked out beforehand, from a stored run, from summaries, or
from both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assay.lab import Finding, Manifest, Run
from assay.lab.confirmation import confirmed
from assay.lab.phase_map import PhaseMap
from assay.lab.stored import MARKS
from assay.lab.study import Study

from . import downloads, exhibits, overview, prose, story
from .folder import Folder
from .maps import Map
from .numbers import date, duration, slug
from .rows import Row, Tally, anchor_of, kind_of, row, tally_of
from .summaries import Side, label


@dataclass(frozen=True)
class Cell:
    """A headline's verdict in the scoreboard."""

    id: str
    anchor: str
    statement: str
    verdict: str
    kind: str
    mark: str


@dataclass(frozen=True)
class Line:
    """A run of the study in the scoreboard: its headlines, and how all its claims came out."""

    label: str
    cells: Sequence[Cell | None]
    counts: Sequence[Tally]
    facts: str
    again: str = ""  # how many verdicts came out again on fresh seeds


@dataclass(frozen=True)
class Page:
    study: Study
    label: str
    facts: str
    rows: list[Row]
    notices: list[str] = field(default_factory=list)
    figures: list[exhibits.Figure] = field(default_factory=list)
    tables: list[exhibits.Table] = field(default_factory=list)
    arms: list[overview.ArmRow] = field(default_factory=list)
    choices: list[overview.Choice] = field(default_factory=list)
    parameters: list[overview.Parameter] = field(default_factory=list)
    settings: dict[str, list[overview.Parameter]] = field(default_factory=dict)
    run: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # of the measurements
    sides: Sequence[Side] = ()
    maps: Sequence[Map] = ()
    prose: prose.Prose = field(default_factory=prose.Prose)
    smoke: bool = False

    @property
    def file(self) -> str:
        return f"{slug(self.study.name)}.html"

    @property
    def claims(self) -> list[Row]:
        return [row for row in self.rows if not row.finding.claim.control]

    @property
    def controls(self) -> list[Row]:
        return [row for row in self.rows if row.finding.claim.control]

    @property
    def groups(self) -> dict[str, list[Row]]:
        """All claims under the headings that their identifiers say."""
        beyond = [row for row in self.claims if row.finding.claim.id.startswith("X")]
        source = [row for row in self.claims if row not in beyond]
        named = {"Claims of the source": source, "Beyond the source": beyond, "Controls": self.controls}
        return {title: rows for title, rows in named.items() if rows}

    @property
    def headlines(self) -> list[Row]:
        return [row for row in (*self.claims, *self.controls) if row.finding.claim.headline]

    @property
    def chapters(self) -> list[story.Chapter]:
        return story.chapters(self.headlines, self.figures)

    @property
    def other_figures(self) -> list[exhibits.Figure]:
        """The figures that the story does not show."""
        told = [chapter.figure for chapter in self.chapters]
        return [figure for figure in self.figures if figure not in told]

    @property
    def charts(self) -> bool:
        """Whether the page draws anything that needs the scripts for it."""
        return bool(self.figures or self.maps)

    @property
    def corrections(self) -> list[Row]:
        return [row for row in (*self.claims, *self.controls) if row.finding.claim.printed is not None]

    @property
    def broken(self) -> list[exhibits.Shown]:
        return [shown for shown in (*self.figures, *self.tables) if shown.error is not None]

    @property
    def lines(self) -> list[Line]:
        headlines = [row.finding.claim.id for row in self.headlines]
        own = {row.finding.claim.id: row.finding for row in self.rows}
        sides = [(side.label, side.findings, f"{side.seeds} seeds, {side.facts('device')}") for side in self.sides]
        return [
            _line(label, headlines, found, facts) for label, found, facts in ((self.label, own, self.facts), *sides)
        ]


def of_run(run: Run, folder: Folder, formats: Iterable[str], sides: Sequence[Side] = ()) -> Page:
    """The page of a stored run, with the summaries of other runs beside its verdicts."""
    study, manifest, measurements = run.study, run.manifest, run.results
    # Judged here and not read back: the drawings need the criterion itself and every seed's number.
    found = study.judge(measurements, manifest, looks=run.looks)
    if (fresh := run.fresh) is not None:
        found = confirmed(found, fresh.judged)
    here = (manifest.preset, manifest.data)
    others = [side.within(study.claims) for side in sides if (side.preset, list(side.data)) != here]
    figures = exhibits.figures(study, measurements, folder, formats)
    tables = exhibits.tables(study, measurements, folder)
    return Page(
        study=study,
        label=label(manifest.preset, manifest.data),
        facts=_facts(manifest),
        rows=[row(finding, others, (*figures, *tables)) for finding in found],
        notices=[*_notices(run), *_broken(found)],
        figures=figures,
        tables=tables,
        arms=overview.arms(study, measurements, manifest),
        choices=overview.choices(study, measurements, manifest),
        parameters=overview.parameters(study, manifest.preset, manifest.params, manifest.set),
        settings=overview.settings(study, measurements, manifest),
        run=overview.run_facts(study, manifest),
        files=downloads.measurements(study, run.measurements, folder),
        sides=others,
        prose=prose.read(study, study.claims),
        smoke=manifest.preset == "smoke",
    )


def of_summaries(study: Study, sides: Sequence[Side]) -> Page:
    """The page of a study of which only summaries are here: verdicts and words, no figures."""
    first, *others = (side.within(study.claims) for side in sides)
    document = first.documents[0]
    return Page(
        study=study,
        label=first.label,
        facts=f"{first.label} · {first.seeds} seeds · {first.facts('device')} · {date(document['started'])}",
        rows=[row(finding, others) for finding in first.findings.values()],
        parameters=overview.parameters(study, first.preset, document["params"], document["set"]),
        run={
            "command": f"assay run {study.name} --preset {first.preset}",
            "stated cost": study.presets[first.preset].cost,
            **{key: first.facts(key) for key in ("device", "machine", "versions", "commit")},
        },
        sides=others,
        prose=prose.read(study, first.findings),
    )


def of_maps(study: Study, found: Sequence[PhaseMap]) -> Page:
    """The page of a study of which only the maps of sweeps are here."""
    preset = found[0].preset
    given = study.resolve(preset, {}).model_dump(mode="json")
    return Page(
        study=study,
        label=preset,
        facts="no run is stored, only the maps of sweeps",
        rows=[],
        parameters=overview.parameters(study, preset, given, {}),
        run={"command": f"assay run {study.name}", "stated cost": study.presets["laptop"].cost},
        prose=prose.read(study, study.claims),
        smoke=preset == "smoke",
    )


def _line(label: str, headlines: Iterable[str], found: Mapping[str, Finding], facts: str) -> Line:
    cells = [_cell(found[id]) if id in found else None for id in headlines]
    counts = tally_of(finding.judgement.verdict for finding in found.values())
    return Line(label, cells, counts, facts, _again(found.values()))


def _again(found: Iterable[Finding]) -> str:
    asked = [finding.confirmed for finding in found if finding.confirmed is not None]
    return f"{sum(asked)} of {len(asked)} confirmed" if asked else ""


def _cell(finding: Finding) -> Cell:
    claim, verdict = finding.claim, finding.judgement.verdict
    return Cell(claim.id, anchor_of(claim.id), claim.statement, verdict, kind_of(verdict), MARKS[verdict])


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
    notices += [f"{each.words}; what it measured then counts as the worst." for each in manifest.diverged]
    if run.parameters_changed:
        notices.append("The study's parameters have changed since this run; run it again before quoting it.")
    elif run.code_changed:
        notices.append("The study's code has changed since this run; run it again before quoting it.")
    return notices
