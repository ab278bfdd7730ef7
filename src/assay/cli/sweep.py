"""`assay sweep`: where does a claim hold? A map over one or two parameters."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli import interruptible
from assay.cli.options import Address, Backend, Device, Json, OneStudy, Preset, RunsFolder, Studies, say, stderr, stdout
from assay.cli.progress import ConsoleProgress
from assay.cli.refusals import reachable
from assay.cli.studies import Arms, FirstSeed, Jobs, Points, Seeds, Sets
from assay.lab import api
from assay.lab.errors import BrokenClaim, UserError
from assay.lab.interrupts import exit_status

ORDER = 12
KINDS = (".svg", ".png", ".pdf", ".html", ".json")
RESULTS = Path("results")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def register(app: typer.Typer) -> None:
    app.command("sweep")(sweep)


def sweep(
    study: OneStudy,
    vary: Annotated[
        list[str],
        typer.Option("--vary", metavar="NAME=...", help="1,2,4 or 0.1..0.5:9 or 1..1000:7log; once or twice."),
    ],
    claim: Annotated[
        str | None, typer.Option("--claim", help="The claim; the one with a predicted boundary by default.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time to spend (90s, 10m, 1h): coarse to fine, finer where neighbours disagree.")
    ] = None,
    preset: Preset = "smoke",
    seeds: Seeds = None,
    first_seed: FirstSeed = 0,
    sets: Sets = None,
    arms: Arms = None,
    points: Points = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the map here: .svg, .png, .pdf, .html or .json.")
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Write the map's numbers to results/.")] = False,
    jobs: Jobs = None,
    backend: Backend = "loky",
    address: Address = None,
    device: Device = "cpu",
    runs: RunsFolder = None,
    studies: Studies = None,
    as_json: Json = False,
) -> None:
    """Judge a claim over a grid of parameters: a map, and how often the theory's predicted boundary is right."""
    from assay.lab.backends import keep_freed_memory
    from assay.lab.grids import parse_axis
    from assay.lab.params import parse_assignments

    if out is not None and out.suffix not in KINDS:
        raise UserError(f"cannot write {out}: a map is written as one of {', '.join(KINDS)}")
    for path in (out, RESULTS / "map.json" if save else None):
        reachable(path)
    keep_freed_memory()  # this process is the command's own
    axes = dict(parse_axis(text) for text in vary)
    if len(axes) < len(vary):
        raise UserError("--vary names one parameter twice")
    asked: dict[str, Any] = dict(
        preset=preset,
        seeds=seeds,
        first_seed=first_seed,
        set=parse_assignments(sets or [], "--set"),
        arms=arms,
        point=parse_assignments(points or [], "--point"),
        budget=None if budget is None else _seconds(budget),
        device=device,
        jobs=jobs,
        backend=backend,
        address=address,
        runs=runs,
        studies=studies,
    )
    try:
        with interruptible(), ConsoleProgress(stderr(), study) as progress:
            found = api.sweep(study, axes, claim, on_event=progress, **asked)
    except KeyboardInterrupt as stop:
        say(f"stopped; the same command goes on with the sweep of {study} where it was")
        sys.exit(exit_status(stop))
    except BrokenClaim as error:
        say(str(error))
        sys.exit(1)
    if as_json:
        print(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
    else:
        stdout().print(repr(found), markup=False, soft_wrap=True)
    if out is not None:
        _write(found, out)
    if save:
        _write(found, RESULTS / f"{found.study}.sweep.{found.claim}.json")
    if failed := [cell for cell in found.cells if cell.failed]:
        say(f"{len(failed)} of {len(found.cells)} cells failed; the first: {failed[0].reason}")
        sys.exit(1)


def _write(found: Any, out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix == ".json":
            found.save(out)
        else:
            found.figure().save(str(out))
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}") from None
    say(f"wrote {out}")


def _seconds(text: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    if match is None or match[2] not in _UNITS:
        raise UserError(f"a budget is a time such as 90s, 10m or 1h, and '{text}' is not")
    return float(match[1]) * _UNITS[match[2]]
