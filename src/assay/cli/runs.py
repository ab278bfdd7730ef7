"""Stored runs from the shell: `assay claims`, `assay runs`, `assay compare`, `assay report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli import console, verdicts
from assay.cli.options import Json, OfPreset, OneRun, RunsFolder, StoredStudies, Studies, say, stdout
from assay.lab import api, folders
from assay.lab.errors import UserError, unknown
from assay.lab.params import PRESETS
from assay.lab.stored import MARKS, Run

ORDER = 20


def register(app: typer.Typer) -> None:
    app.command("claims")(claims)
    app.command("runs")(runs)
    app.command("compare")(compare)
    app.command("report")(report)


def claims(
    names: StoredStudies = None,
    preset: OfPreset = None,
    run_id: OneRun = None,
    every: Annotated[bool, typer.Option("--all", help="All claims, not the headlines alone.")] = False,
    verdict: Annotated[
        str | None, typer.Option("--verdict", help="Claims with this verdict: holds, fails, undecided, not run.")
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option("--id", help="One claim (C3a), or all whose identifier begins so (C3). May be given again."),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Write the summary to results/.")] = False,
    runs: RunsFolder = None,
    studies: Studies = None,
    as_json: Json = False,
) -> None:
    """Headline verdicts of the newest complete run of each study, and how the other claims came out."""
    if verdict is not None and verdict not in MARKS:
        raise unknown("verdict", verdict, MARKS)
    chosen = _stored_runs(names, runs, studies, preset, run_id)
    known = [claim for run in chosen for claim in run.study.claims]
    if missed := [each for each in id or () if not any(verdicts.means(each, claim) for claim in known)]:
        among = "the study" if len(chosen) == 1 else f"the {len(chosen)} studies"
        raise UserError(f"no claim of {among} is called '{missed[0]}' or begins so; --all shows them all")
    if save:
        from assay.lab import results

        for run in chosen:
            results.check_quotable(run.store, run.study, run.manifest)
    rows: list[dict[str, Any]] = []
    broken = False
    for run in chosen:
        found = run.claims
        rows += [finding.row() for finding in verdicts.asked_for(found, verdict=verdict, id=id or ())]
        if missing := run.missing:
            say(f"{missing} of {len(run.manifest.units)} units of {run.manifest.study} are not stored yet")
        for each in run.manifest.diverged:
            say(f"{each.words}; what it measured then counts as the worst")
        if changed := "code" if run.code_changed else "parameters" if run.parameters_changed else "":
            has = "has" if changed == "code" else "have"
            arms = f" (arms {', '.join(run.code_changed)})" if run.code_changed else ""
            say(f"the {changed} of {run.manifest.study} {has} changed since this run{arms}; run it again")
        if save:
            path = results.save_summary(
                Path("results"), run.store, run.study, run.manifest, list(found), run.fresh_seeds
            )
            say(f"wrote {path}")
        if not as_json:
            title = f"{run.manifest.heading}, run {run.id}"
            verdicts.print_claims(stdout(), found, title, every=every, verdict=verdict, id=id or ())
        broken = verdicts.say_broken(found) or broken
    if as_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    if broken:
        raise typer.Exit(1)


def runs(
    names: StoredStudies = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="RUN", help="Take away this run, and units no other uses.")
    ] = None,
    name: Annotated[
        tuple[str, str] | None, typer.Option("--name", metavar="RUN NAME", help="Give a run a name to find it by.")
    ] = None,
    folder: RunsFolder = None,
    as_json: Json = False,
) -> None:
    """Stored runs: what each was, how it went, when, and what it takes on disk."""
    for word in remove or []:
        run = api.find_run(word, runs=folder)
        freed = api.remove_run(run.id, runs=folder)
        say(f"removed run {run.id} of {run.manifest.study}, {console.size(freed)}")
    if name:
        run = api.rename_run(name[0], name[1], runs=folder)
        say(f"run {run.id} is called '{run.manifest.name}'" if run.manifest.name else f"run {run.id} has no name now")
    known = api.runs(runs=folder)
    stored = list(dict.fromkeys(run.manifest.study for run in known))
    for study in names or []:
        if study not in stored:
            raise UserError(
                f"no run of '{study}' is stored in {folders.runs_folder(folder)} (stored: {', '.join(stored)})"
            )
    chosen = [run for run in known if not names or run.manifest.study in names]
    if as_json:
        print(json.dumps([console.run_document(run) for run in chosen], indent=1, ensure_ascii=False))
    elif chosen:
        console.print_runs(stdout(), chosen)
    elif not remove:
        say(f"no runs are stored in {folders.runs_folder(folder)}")


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A run: its id, the beginning of it, or its name.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    runs: RunsFolder = None,
    studies: Studies = None,
    as_json: Json = False,
) -> None:
    """Two runs side by side: verdicts that turned, estimates that moved, what differs in parameters and code."""
    found = api.compare(a, b, runs=runs, studies=studies)
    if as_json:
        print(json.dumps(console.comparison_document(found), indent=1, ensure_ascii=False, default=str))
    else:
        console.print_comparison(stdout(), found)


def report(
    names: StoredStudies = None,
    out: Annotated[Path, typer.Option(help="Folder to write the site into.")] = Path("report"),
    preset: OfPreset = None,
    run_id: OneRun = None,
    export: Annotated[str, typer.Option(help="Also write each figure as these: svg,png,pdf or none.")] = "pdf",
    results: Annotated[
        bool, typer.Option("--results", help="Set the summaries in results/ beside the runs, or alone without one.")
    ] = False,
    runs: RunsFolder = None,
    studies: Studies = None,
) -> None:
    """A static site: an index with all verdicts, a page per study; works offline."""
    from assay.report import site

    everything = not names and run_id is None
    swept = api.maps(runs=runs) if everything else []
    alone = everything and (results or bool(swept)) and not folders.stored_studies(folders.runs_folder(runs))
    chosen = [] if alone else _stored_runs(names, runs, studies, preset, run_id)
    formats = site.parse_formats(export)
    summaries = Path("results") if results else None
    try:
        print(site.write(chosen, out, formats=formats, say=say_plain, results=summaries, studies=studies, swept=swept))
    except site.BrokenExhibit as error:
        say(str(error))
        raise typer.Exit(1) from error


def say_plain(sentence: str) -> None:
    import sys

    print(sentence, file=sys.stderr)


def _stored_runs(
    names: list[str] | None, runs: Path | None, studies: str | None, preset: str | None, run_id: str | None
) -> list[Run]:
    """The runs that a command reads; with no study named, those of all studies that have one."""
    folder, outside = folders.runs_folder(runs), folders.studies_folder(studies)
    if names and "all" in names and names != ["all"]:
        raise UserError("'all' stands for every study with a run, so it cannot be named together with others")
    if names and names != ["all"]:
        wanted = names
    else:
        wanted = _known(folder, outside)
        if preset is not None and run_id is None:
            wanted = _with_preset(wanted, folder, preset)
    if preset is not None and preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if run_id is not None and len(wanted) != 1:
        raise UserError("--run names one run, so name its study too")
    chosen = []
    for name in wanted:
        run, newer = api.newest_run(name, preset=preset, run=run_id, runs=folder, studies=outside)
        if newer is not None and newer.manifest.whole and newer.manifest.status == "complete":
            say(f"{name} has a newer run of the preset {newer.manifest.preset}: --preset {newer.manifest.preset}")
        elif newer is not None and newer.id != (fresh.id if (fresh := run.fresh) else ""):
            what = newer.manifest.request_words or newer.manifest.status
            say(f"{name} has a newer run that is not the whole preset ({what}): --run {newer.id}")
        elif run_id is None and not (run.manifest.whole and run.manifest.status == "complete"):
            what = run.manifest.request_words or run.manifest.status
            say(f"{name} has no complete run of a preset as it is; this is {run.id} ({what})")
        chosen.append(run)
    return chosen


def _known(folder: Path, outside: str | None) -> list[str]:
    from assay.lab import discovery

    stored = folders.stored_studies(folder)
    discovery.may_hold("", outside)  # a folder without studies is refused whatever is stored
    known = [name for name in stored if discovery.may_hold(name, outside)]
    if not known:
        own = f" (those of {', '.join(stored)} need --studies)" if stored and not outside else ""
        raise UserError(f"no runs of known studies are stored in {folder}{own}; start one with: assay run STUDY")
    return known


def _with_preset(studies: list[str], folder: Path, preset: str) -> list[str]:
    from assay.lab.store import Store

    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    found = [name for name in studies if any(m.preset == preset for m in Store(folder, name).readable_manifests())]
    if not found:
        start = f"assay run {studies[0]} --preset {preset}"
        raise UserError(f"no run with preset {preset} is stored in {folder}; start one with: {start}")
    return found
