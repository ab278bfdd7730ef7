"""The command line: one front door to studies, verdicts, reports and benchmarks."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from assay import cli_gemfilter
from assay.lab.errors import UserError

app = typer.Typer(
    help="Assay: a laboratory for feature learning. Run a study, read its verdicts, look at its report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
# A pipe has no width of its own, and eighty columns would cut the verdict table.
_out = Console(highlight=False, width=None if sys.stdout.isatty() else 150)
_err = Console(stderr=True, highlight=False)

Runs = Annotated[Path, typer.Option("--runs", envvar="ASSAY_RUNS", help="Folder of stored runs.")]
Outside = Annotated[str | None, typer.Option("--studies", help="A folder with studies of your own.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output and nothing else.")]
Wanted = Annotated[str | None, typer.Option("--preset", help="Only runs of this preset.")]
Named = Annotated[list[str] | None, typer.Argument(metavar="[STUDY...]", help="All studies with runs by default.")]
RunId = Annotated[str | None, typer.Option("--run", help="The id of a stored run instead of the newest.")]
_DEFAULT_RUNS = Path("runs")


def main() -> None:
    """Run the command line; bad input gets one sentence and exit status 2."""
    try:
        sys.exit(app(standalone_mode=False))
    except UserError as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        # A usage error of the parser (an unknown option, a number that is none), known by its shape: the parser's
        # own classes moved between releases. Called without arguments, its message is the help text.
        if type(error).__name__ == "Abort":
            sys.exit(130)
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        context = getattr(error, "ctx", None)
        if message.lstrip().startswith("Usage") or not message:
            print(message or (context.get_help() if context else ""), file=sys.stderr)
        else:
            where = f"; see '{context.command_path} --help'" if context else ""
            print(f"assay: {message.rstrip('.')}{where}", file=sys.stderr)
        sys.exit(2)


@app.command("list")
def list_studies(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[STUDY...]", help="Arms, parameters, settings and claims of these."),
    ] = None,
    studies: Outside = None,
    as_json: Json = False,
) -> None:
    """Studies with their question, claims and cost per preset; of named ones everything that can be asked of them."""
    from assay.lab import discovery
    from assay.lab.console import study_tables

    outside = _folder(studies)
    known = [discovery.find(name, outside) for name in names] if names else discovery.studies(outside).values()
    found = list(known)
    if as_json:
        rows = [
            {
                "study": study.name,
                "title": study.title,
                "question": study.question,
                "source": study.source,
                "claims": list(study.claims),
                "arms": list(study.arms),
                "cost": {name: preset.cost for name, preset in study.presets.items()},
            }
            for study in found
        ]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    if names:
        for study in found:
            _out.print(f"{study.name}: {study.title}", f"{study.question} ({study.source})", sep="\n", markup=False)
            for shown in study_tables(study):
                _out.print(shown)
        return
    table = Table("study", "question", "claims", "smoke", "laptop", "paper")
    for study in found:
        costs = [study.presets[name].cost for name in ("smoke", "laptop", "paper")]
        table.add_row(study.name, study.question, str(len(study.claims)), *costs)
    _out.print(table)


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(metavar="STUDY...", help="Studies to run, or 'all'.")],
    preset: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "laptop",
    seeds: Annotated[int | None, typer.Option(help="Seeds 0..N-1 for every arm and setting.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter.")] = None,
    arms: Annotated[str | None, typer.Option(help="Only these arms (a,b), or one more (+c).")] = None,
    jobs: Annotated[int | None, typer.Option(help="Units at a time (a GPU: 1); changes no number.")] = None,
    backend: Annotated[str, typer.Option(help="loky, ray or dask.")] = "loky",
    address: Annotated[str | None, typer.Option(help="Address of a ray or dask cluster.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "cpu",
    runs: Runs = _DEFAULT_RUNS,
    studies: Outside = None,
    as_json: Json = False,
) -> None:
    """Run studies: stored units are skipped, an interrupted run goes on where it stopped."""
    from assay.lab import discovery
    from assay.lab.backends import name_device
    from assay.lab.params import parse_overrides
    from assay.lab.plan import Request, idle_overrides, make_plan
    from assay.lab.runner import Options
    from assay.lab.store import Store

    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs} is not allowed: at least one unit must run at a time")
    if address is not None and backend == "loky":
        raise UserError("--address names a cluster, so say of which kind: --backend ray or --backend dask")
    if "all" in names and names != ["all"]:
        raise UserError("'all' stands for every study, so it cannot be named together with others")
    outside = _folder(studies)
    request = Request(preset, parse_overrides(sets or []), seeds, arms, name_device(device))
    chosen = discovery.studies(outside).values() if names == ["all"] else [discovery.find(n, outside) for n in names]
    plans = [make_plan(study, request, Store(runs, study.name).whole) for study in chosen]
    for plan in plans:
        for name in idle_overrides(plan.study, request):
            given = f"--set {name}={request.overrides[name]}"
            why = "no arm of it reads this parameter, or its settings fix it"
            print(f"assay: {given} changes nothing that {plan.study.name} computes here: {why}", file=sys.stderr)
    options = Options(jobs, backend, address, outside)
    documents = [_run_one(plan, runs, options, quiet=as_json) for plan in plans]
    if as_json:
        print(json.dumps({"runs": documents}, indent=1, ensure_ascii=False))
    if any(document["status"] != "complete" for document in documents):
        raise typer.Exit(1)


def _run_one(plan: Any, runs: Path, options: Any, *, quiet: bool) -> dict[str, Any]:
    from assay.lab import results, runner
    from assay.lab.console import ConsoleProgress, verdict_table
    from assay.lab.store import Store

    study, store = plan.study, Store(runs, plan.study.name)
    try:
        with ConsoleProgress(_err, study.name) as progress:
            outcome = runner.run(plan, store, options, progress)
    except KeyboardInterrupt:
        print(f"assay: stopped; the same command goes on with {study.name} where it was", file=sys.stderr)
        sys.exit(130)
    found = results.findings(store, study, outcome.manifest)
    manifest = outcome.manifest
    if not quiet:
        _out.print(verdict_table(found, results.heading(study, manifest)))
        counts = Counter(finding.judgement.verdict for finding in found)
        tally = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        done = f"{outcome.computed} units computed, {outcome.reused} reused, {manifest['seconds']:.1f} s"
        _out.print(f"{tally}. {done}. Run {manifest['id']} in {store.root}.", soft_wrap=True)
    if count := len(outcome.failures):
        where = store.manifests / f"{manifest['id']}.json"
        print(f"assay: {count} units of {study.name} failed; their tracebacks are in {where}", file=sys.stderr)
    keys = ("study", "id", "preset", "set", "arms", "skipped", "device", "status", "seconds", "computed", "reused")
    document = {key: manifest[key] for key in keys}
    return {
        **document,
        "seeds": results.seeds_used(manifest),
        "units": len(manifest["units"]),
        "claims": [finding.row() for finding in found],
    }


@app.command()
def claims(
    names: Named = None,
    preset: Wanted = None,
    run_id: RunId = None,
    save: Annotated[bool, typer.Option("--save", help="Write the summary to results/.")] = False,
    runs: Runs = _DEFAULT_RUNS,
    studies: Outside = None,
    as_json: Json = False,
) -> None:
    """Verdicts of the newest run of each study."""
    from assay.lab import results
    from assay.lab.console import verdict_table

    rows: list[dict[str, Any]] = []
    chosen = _stored_runs(names, runs, studies, preset, run_id)
    for study, store, manifest in chosen if save else []:
        results.check_quotable(store, study, manifest)
    for study, store, manifest in chosen:
        found = results.findings(store, study, manifest)
        rows += [finding.row() for finding in found]
        if missing := results.incomplete(store, manifest):
            total = len(manifest["units"])
            print(f"assay: {missing} of {total} units of {study.name} are not stored yet", file=sys.stderr)
        if results.code_changed(study, manifest):
            print(f"assay: the code of {study.name} has changed since this run; run it again", file=sys.stderr)
        if save:
            path = results.save_summary(Path("results"), store, study, manifest, found)
            print(f"assay: wrote {path}", file=sys.stderr)
        if not as_json:
            _out.print(verdict_table(found, f"{results.heading(study, manifest)}, run {manifest['id']}"))
    if as_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))


@app.command()
def report(
    names: Named = None,
    out: Annotated[Path, typer.Option(help="Folder to write the site into.")] = Path("report"),
    preset: Wanted = None,
    run_id: RunId = None,
    export: Annotated[str, typer.Option(help="Also write each figure as these: svg,png,pdf or none.")] = "svg,png",
    runs: Runs = _DEFAULT_RUNS,
    studies: Outside = None,
) -> None:
    """A static site: an index with all verdicts, a page per study; works offline."""
    from assay.report import site

    chosen = _stored_runs(names, runs, studies, preset, run_id)
    formats = site.parse_formats(export)
    try:
        print(site.write(chosen, out, formats=formats, say=lambda text: print(text, file=sys.stderr)))
    except site.BrokenExhibit as error:
        print(f"assay: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]", help="All benchmarks by default.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "cpu",
    save: Annotated[bool, typer.Option("--save", help="Write the result to results/.")] = False,
    as_json: Json = False,
) -> None:
    """Side-by-side benchmarks: ratios measured in one run."""
    from assay import benchmarks
    from assay.lab.backends import pick_device

    results = [benchmarks.run(name, pick_device(device)) for name in benchmarks.chosen(names)]
    for result in results:
        if save:
            print(f"assay: wrote {benchmarks.save(result, Path('results'))}", file=sys.stderr)
        if not as_json:
            _out.print(benchmarks.table(result))
    if as_json:
        print(json.dumps(results, indent=1))


cli_gemfilter.register(app)


def _stored_runs(
    names: list[str] | None, runs: Path, studies: str | None, preset: str | None, run_id: str | None
) -> list[tuple[Any, Any, dict[str, Any]]]:
    """(study, store, manifest) of the runs that a command reads; with no study named, of those that have such a run."""
    from assay.lab import discovery, results
    from assay.lab.store import Store

    outside = _folder(studies)
    if names and "all" in names and names != ["all"]:
        raise UserError("'all' stands for every study with a run, so it cannot be named together with others")
    if names and names != ["all"]:
        wanted = [discovery.find(name, outside) for name in names]
    else:
        known = discovery.studies(outside)
        wanted = [study for study in known.values() if Store(runs, study.name).manifest_ids()]
        if not wanted:
            others = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
            own = f" (those of {', '.join(others)} need --studies)" if others and not studies else ""
            start = f"assay run {next(iter(known), 'STUDY')}"
            raise UserError(f"no runs of known studies are stored in {runs}{own}; start one with: {start}")
        if preset is not None and run_id is None:
            wanted = _with_preset(wanted, runs, preset)
    if run_id is not None and len(wanted) != 1:
        raise UserError("--run names one run, so name its study too")
    chosen = []
    for study in wanted:
        store = Store(runs, study.name)
        if preset is not None:
            study.preset(preset)
        chosen.append((study, store, results.pick_manifest(store, study.name, preset=preset, run=run_id)))
    return chosen


def _with_preset(studies: list[Any], runs: Path, preset: str) -> list[Any]:
    from assay.lab.store import Store

    if not any(preset in study.presets for study in studies):
        studies[0].preset(preset)
    found = [study for study in studies if Store(runs, study.name).newest(preset) is not None]
    if not found:
        start = f"assay run {studies[0].name} --preset {preset}"
        raise UserError(f"no run with preset {preset} is stored in {runs}; start one with: {start}")
    return found


def _folder(studies: str | None) -> str | None:
    if studies is None:
        return None
    if not Path(studies).is_dir():
        raise UserError(f"the studies folder {studies} does not exist")
    return str(Path(studies).resolve())


if __name__ == "__main__":
    main()
