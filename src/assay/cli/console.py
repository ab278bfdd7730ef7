"""What a person sees in the terminal: verdicts, runs, studies. In a narrow one, a row becomes a paragraph."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.lab.stored import MARKS, Run

if TYPE_CHECKING:
    from assay.lab.comparison import Change, Comparison
    from assay.lab.findings import Finding
    from assay.lab.forecast import Forecast
    from assay.lab.outline import Outline
    from assay.lab.study import Study

STYLES = {"holds": "green", "fails": "red", "undecided": "yellow", "not run": "dim"}
TABLE = 110  # columns from which a table of verdicts reads well


def print_outlines(console: Console, known: Sequence[Outline]) -> None:
    if console.width >= TABLE:
        table = Table("study", "question", "claims", "smoke", "laptop", "paper")
        for study in known:
            costs = [study.cost[name] for name in ("smoke", "laptop", "paper")]
            table.add_row(study.name, study.question, str(len(study.claims)), *costs)
        console.print(table)
        return
    for study in known:
        stated = ", ".join(f"{name} {cost}" for name, cost in study.cost.items())
        console.print(Text(study.name, style="bold"))
        paragraph(console, study.question, 4)
        paragraph(console, f"{len(study.claims)} claims; {stated}", 4, "dim")


def print_study(console: Console, study: Study) -> None:
    """What can be asked of a study: its arms for ``--arms``, parameters and settings for ``--set``, its claims."""
    console.print(f"{study.name}: {study.title}", f"{study.question} ({study.source})", sep="\n", markup=False)
    for title, columns, rows in _study_rows(study):
        if rows:
            print_rows(console, title, columns, rows)


def _study_rows(study: Study) -> list[tuple[str, list[str], list[list[str]]]]:
    usual = study.usual_arms("laptop")
    presets = {name: study.resolve(name, {}).model_dump(mode="json") for name in study.presets}
    own = _own_parameters(study)
    sections = []
    for part, names in own.items():
        arms = [
            [
                arm.name,
                arm.description + ("" if arm.name in usual else " (only when asked for)"),
                ", ".join(arm.uses) if arm.uses is not None else "all of its part" if part else "all",
            ]
            for arm in study.arms.values()
            if arm.part == part
        ]
        parameters = [
            [
                name,
                *(_brief(chosen[name]) for chosen in presets.values()),
                study.model.model_fields[name].description or "",
            ]
            for name in names
        ]
        where = f" of the part '{part}'" if part else " that parts share" if study.parts else ""
        sections.append((f"arms{where}", ["arm", "what it does", "parameters"], arms))
        sections.append((f"parameters{where}", ["parameter", *presets, "meaning"], parameters))
    settings = [
        [name, ", ".join(f"{parameter}={_brief(value)}" for parameter, value in fixed.items())]
        for name, fixed in study.settings.items()
    ]
    claims = [[claim.id, claim.statement, claim.source] for claim in study.ordered_claims()]
    return [
        *sections,
        ("settings", ["setting", "fixes"], settings),
        ("claims", ["claim", "statement", "source"], claims),
    ]


def _own_parameters(study: Study) -> dict[str, list[str]]:
    """The parameters that one part alone has, by part; those of several, or of the study itself, under no name."""
    readers = {name: [p.name for p in study.parts if name in p.model.model_fields] for name in study.model.model_fields}
    shared = [name for name, parts in readers.items() if len(parts) != 1]
    return {"": shared} | {p.name: [name for name, parts in readers.items() if parts == [p.name]] for p in study.parts}


def study_document(study: Study) -> dict[str, Any]:
    return {
        "study": study.name,
        "title": study.title,
        "question": study.question,
        "source": study.source,
        "claims": [claim.id for claim in study.ordered_claims()],
        "arms": list(study.arms),
        "parts": [part.name for part in study.parts],
        "cost": {name: preset.cost for name, preset in study.presets.items()},
        "parameters": {name: field.description for name, field in study.model.model_fields.items()},
        "settings": study.settings,
    }


def print_forecast(console: Console, forecast: Forecast) -> None:
    rows = [[str(cell) for cell in row.values()] for row in forecast.rows()]
    print_rows(console, forecast.summary, ["arm", "compute", "reuse", "reason"], rows)


def forecast_document(forecast: Forecast) -> dict[str, Any]:
    plan = forecast.plan
    return {
        "study": plan.study.name,
        "preset": plan.request.preset,
        "compute": forecast.compute,
        "reuse": forecast.reuse,
        "seconds": forecast.seconds,
        "arms": forecast.rows(),
    }


def run_document(run: Run) -> dict[str, Any]:
    manifest = run.manifest
    return {
        **{key: getattr(manifest, key) for key in ("id", "name", "study", "preset", "set", "point", "arms", "status")},
        "seeds": manifest.seeds_used,
        "first_seed": manifest.first_seed,
        "whole": manifest.whole,
        "verdicts": run.known_counts,
        "diverged": [each.words for each in manifest.diverged],
        "started": manifest.started,
        "units": len(manifest.units),
        "bytes": run.store.size(unit.key for unit in manifest.units),
    }


def print_runs(console: Console, runs: Sequence[Run]) -> None:
    columns = ["run", "name", "study", "preset and request", "seeds", "status", "verdicts", "date", "size"]
    rows = []
    for run in runs:
        manifest = run.manifest
        counts = " ".join(f"{MARKS[verdict]}{count}" for verdict, count in run.known_counts.items())
        request = manifest.model_copy(update={"seeds": None, "first_seed": 0}).request_words
        on = f"on {', '.join(manifest.data)}" if manifest.data else ""
        asked = " ".join(part for part in (manifest.preset, on, request) if part)
        date = manifest.started[:16].replace("T", " ")
        used = size(run.store.size(unit.key for unit in manifest.units))
        status = f"{manifest.status}, {len(manifest.diverged)} diverged" if manifest.diverged else manifest.status
        rows.append([run.id, manifest.name, manifest.study, asked, _seed_range(run), status, counts, date, used])
    print_rows(console, "", columns, rows, least=140)


def _seed_range(run: Run) -> str:
    first, count = run.manifest.first_seed, run.manifest.seeds_used
    return f"{count}" if not first else f"{first}–{first + count - 1}"


def print_comparison(console: Console, found: Comparison) -> None:
    """Two runs side by side: what differs in what they were, then what came out differently."""
    for letter, run in (("A", found.a), ("B", found.b)):
        console.print(f"{letter}: {run.id}, {run.manifest.heading}", markup=False)
    facts = {
        **found.request,
        **{f"parameter {name}": pair for name, pair in found.parameters.items()},
        **found.machines,
    }
    if facts:
        rows = [[name, _brief(a), _brief(b)] for name, (a, b) in facts.items()]
        print_rows(console, "what differs", ["", "A", "B"], rows)
    for arm, files in found.code.items():
        which = ", ".join(f"`{name}`" for name in files) or "files that are not recorded"
        console.print(f"the code of arm '{arm}' differs in {which}", markup=False)
    for title, changes in (("verdicts that turned", found.turned), ("estimates that moved", found.moved)):
        if changes:
            rows = [[change.id, _side(change, 0), _side(change, 1), _statement(change)] for change in changes]
            print_rows(console, title, ["claim", "A", "B", "statement"], rows)
    same = len(found.claims) - len(found.turned) - len(found.moved)
    console.print(
        f"{len(found.turned)} verdicts turned, {len(found.moved)} estimates moved, {same} claims are the same."
    )


def comparison_document(found: Comparison) -> dict[str, Any]:
    def side(finding: Finding | None) -> dict[str, Any] | None:
        return finding.row() if finding else None

    return {
        "a": found.a.id,
        "b": found.b.id,
        "request": found.request,
        "parameters": found.parameters,
        "code": found.code,
        "machines": found.machines,
        "turned": [{"id": c.id, "a": side(c.before), "b": side(c.after)} for c in found.turned],
        "moved": [{"id": c.id, "a": side(c.before), "b": side(c.after)} for c in found.moved],
        "same": len(found.claims) - len(found.turned) - len(found.moved),
    }


def _side(change: Change, which: int) -> str:
    finding = (change.before, change.after)[which]
    if finding is None:
        return "absent"
    judged = finding.judgement
    measured = f"{number(judged.estimate)} {interval(judged.low, judged.high)}"
    return f"{MARKS[judged.verdict]} {judged.verdict} {measured}".strip()


def _statement(change: Change) -> str:
    finding = change.after or change.before
    return finding.claim.statement if finding else ""


def print_rows(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, least: int = TABLE
) -> None:
    """A table, or below ``least`` columns a paragraph per row: the first cell, then the others with their names."""
    table = Table(*columns)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if title:
        console.print(Text(title, style="italic"))
    natural = console.measure(table, options=console.options.update(max_width=100_000)).maximum
    if console.width >= least or natural <= console.width:
        console.print(table)
        return
    for row in rows:
        console.print(Text(row[0], style="bold"))
        cells = [f"{name}: {cell}" for name, cell in zip(columns[1:], row[1:], strict=True) if cell]
        for cell in cells:
            paragraph(console, cell, 4)


def paragraph(console: Console, text: str, indent: int, style: str = "") -> None:
    blank = " " * indent
    wrapped = textwrap.wrap(text, max(20, console.width - indent), break_long_words=True)
    for line in wrapped:
        console.print(Text(blank + line, style=style), soft_wrap=True)


def _brief(value: object) -> str:
    return ", ".join(_brief(part) for part in value) if isinstance(value, (list, tuple)) else str(value)


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"


def interval(low: float, high: float) -> str:
    return "" if math.isnan(low) or math.isnan(high) else f"[{low:.4g}, {high:.4g}]"


def count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.0f} KiB"
