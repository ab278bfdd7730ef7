"""Studies from the shell: `assay list`, `assay run`, `assay check`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from assay.cli import console, interruptible, verdicts
from assay.cli.options import (
    Address,
    Backend,
    Device,
    Json,
    ListedStudies,
    OneStudy,
    Preset,
    RunsFolder,
    SomeStudies,
    Studies,
    say,
    stderr,
    stdout,
)
from assay.cli.progress import ConsoleProgress
from assay.lab import api, folders
from assay.lab.errors import UserError
from assay.lab.interrupts import exit_status

Seeds = Annotated[int | None, typer.Option(help="How many seeds, for every arm and setting; those stored are used.")]
FirstSeed = Annotated[int, typer.Option(help="The first seed: N seeds are FIRST..FIRST+N-1.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter; several values as widths=16,32."),
]
Arms = Annotated[str | None, typer.Option(help="Only these arms (a,b), or one more (+c).")]
Points = Annotated[
    list[str] | None, typer.Option("--point", metavar="NAME=VALUE", help="Only this point of the arms' grids.")
]
Jobs = Annotated[int | None, typer.Option(help="Units at a time (a GPU: 1); changes no number.")]

ORDER = 10


def register(app: typer.Typer) -> None:
    app.command("list")(list_studies)
    app.command("run")(run)
    app.command("check")(check)
    app.command("confirm")(confirm)


def list_studies(names: ListedStudies = None, studies: Studies = None, as_json: Json = False) -> None:
    """Studies with their question, claims and cost per preset; of named ones everything that can be asked of them."""
    folder = folders.studies_folder(studies)
    if names:
        from assay.lab import discovery

        found = [discovery.find(name, folder) for name in names]
        if as_json:
            print(json.dumps([console.study_document(study) for study in found], indent=1, ensure_ascii=False))
            return
        for study in found:
            console.print_study(stdout(), study)
        return
    known = api.outlines(folder)
    if as_json:
        rows = [{"study": row.pop("name"), **row} for row in map(asdict, known)]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        console.print_outlines(stdout(), known)


def run(
    names: SomeStudies,
    preset: Preset = "laptop",
    seeds: Seeds = None,
    first_seed: FirstSeed = 0,
    sets: Sets = None,
    arms: Arms = None,
    points: Points = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be computed, and why; do nothing.")
    ] = False,
    stored: Annotated[
        bool, typer.Option("--stored", help="Join what is stored, from whatever machines; compute nothing.")
    ] = False,
    name: Annotated[str, typer.Option("--name", help="A name to find the run by.")] = "",
    jobs: Jobs = None,
    backend: Backend = "loky",
    address: Address = None,
    device: Device = "cpu",
    runs: RunsFolder = None,
    studies: Studies = None,
    as_json: Json = False,
) -> None:
    """Run studies: stored units are skipped, an interrupted run goes on where it stopped."""
    from assay.lab.params import parse_assignments

    request: dict[str, Any] = dict(
        preset=preset,
        seeds=seeds,
        first_seed=first_seed,
        set=parse_assignments(sets or [], "--set"),
        arms=arms,
        point=parse_assignments(points or [], "--point"),
        device=device,
        stored=stored,
        runs=runs,
        studies=studies,
    )
    chosen = _chosen(names, studies)
    # All are looked at before any is run: a slip in the last name costs no time.
    forecasts = [api.plan(study, **request) for study in chosen]
    if dry_run:
        if as_json:
            print(json.dumps([console.forecast_document(f) for f in forecasts], indent=1, ensure_ascii=False))
        for forecast in forecasts if not as_json else []:
            console.print_forecast(stdout(), forecast)
        return
    request |= dict(jobs=jobs, backend=backend, address=address, name=name)
    documents = [_run_one(study, request, quiet=as_json) for study in chosen]
    if as_json:
        print(json.dumps({"runs": documents}, indent=1, ensure_ascii=False))
    if any(document["status"] != "complete" or document["broken"] for document in documents):
        raise typer.Exit(1)


def _chosen(names: list[str], studies: str | None) -> list[Any]:
    from assay.lab import discovery

    if "all" in names and names != ["all"]:
        raise UserError("'all' stands for every study, so it cannot be named together with others")
    folder = folders.studies_folder(studies)
    if names == ["all"]:
        return list(discovery.studies(folder).values())
    return [discovery.find(name, folder) for name in names]


def _run_one(study: Any, request: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    from assay.lab.backends import keep_freed_memory

    keep_freed_memory()  # this process is the command's own
    from assay.lab import runner  # noqa: F401 (what the run needs is loaded before it can be interrupted)

    try:
        with interruptible(), ConsoleProgress(stderr(), study.name) as progress:
            done = api.run(study, on_event=progress, **request)
    except KeyboardInterrupt as stop:
        say(f"stopped; the same command goes on with {study.name} where it was")
        sys.exit(exit_status(stop))
    manifest, found = done.manifest, done.claims
    if not quiet:
        verdicts.print_claims(stdout(), found, manifest.heading)
        counts = (
            f"{console.count(manifest.computed, 'unit')} computed, {manifest.reused} reused, {manifest.seconds:.1f} s"
        )
        tally = f"{api.verdict_counts(found)}. " if found else ""
        stdout().print(f"{tally}{counts}. Run {manifest.id} in {done.store.root}.", soft_wrap=True)
    if count := len(manifest.failures):
        where = done.store.manifests / f"{manifest.id}.json"
        say(f"{count} units of {study.name} failed; their tracebacks are in {where}")
    verdicts.say_broken(found)
    keys = (
        "study",
        "id",
        "name",
        "preset",
        "set",
        "arms",
        "skipped",
        "device",
        "status",
        "seconds",
        "computed",
        "reused",
    )
    document = {key: getattr(manifest, key) for key in keys}
    return {
        **document,
        "seeds": manifest.seeds_used,
        "units": len(manifest.units),
        "broken": [finding.claim.id for finding in found.broken],
        "claims": found.rows(),
    }


def confirm(
    names: SomeStudies,
    preset: Preset = "laptop",
    first_seed: Annotated[int, typer.Option("--first-seed", help="The first of the fresh seeds.")] = 1000,
    jobs: Jobs = None,
    device: Device = "cpu",
    runs: RunsFolder = None,
    studies: Studies = None,
    as_json: Json = False,
) -> None:
    """Judge the claims of the newest complete run once more, on fresh seeds: which verdicts stand?"""
    from assay.lab.backends import keep_freed_memory

    keep_freed_memory()  # this process is the command's own
    found = []
    for study in _chosen(names, studies):
        try:
            with interruptible(), ConsoleProgress(stderr(), study.name) as progress:
                found.append(
                    api.confirm(
                        study,
                        preset,
                        first_seed=first_seed,
                        device=device,
                        jobs=jobs,
                        runs=runs,
                        studies=studies,
                        on_event=progress,
                    )
                )
        except KeyboardInterrupt as stop:
            say(f"stopped; the same command goes on with {study.name} where it was")
            sys.exit(exit_status(stop))
        if not as_json:
            verdicts.print_confirmation(stdout(), found[-1])
    if as_json:
        print(json.dumps([row for each in found for row in each.rows()], indent=1, ensure_ascii=False))
    if any(each.second.manifest.status != "complete" for each in found):
        raise typer.Exit(1)


def check(
    name: OneStudy,
    arms: Annotated[str | None, typer.Option(help="Only these arms (a,b), or one more (+c).")] = None,
    studies: Studies = None,
    as_json: Json = False,
) -> None:
    """An author's tests: seeds that depend on each other, global randomness, broken claims, parameters nobody reads."""
    from assay.lab.checking import check as check_study

    found = check_study(name, arms=arms, studies=studies, say=lambda text: None if as_json else print(text, flush=True))
    if as_json:
        print(json.dumps([asdict(problem) for problem in found], indent=1, ensure_ascii=False))
    else:
        for problem in found:
            print(problem)
        print(console.count(len(found), "problem") if found else "no problems")
    if found:
        raise typer.Exit(1)
