"""Benchmarks from the shell: `assay bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import Device, Json, say, stdout

ORDER = 30


def register(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME...]", help="By default all but laptop, which takes half an hour."),
    ] = None,
    device: Device = "cpu",
    save: Annotated[bool, typer.Option("--save", help="Write the result to results/.")] = False,
    as_json: Json = False,
) -> None:
    """Side-by-side benchmarks: ratios measured in one run."""
    from assay import benchmarks
    from assay.lab.backends import keep_freed_memory, pick_device

    chosen, picked = benchmarks.chosen(names), pick_device(device)
    keep_freed_memory()  # this process is the command's own
    results = [benchmarks.run(name, picked) for name in chosen]
    for result in results:
        if save:
            say(f"wrote {benchmarks.save(result, Path('results'))}")
        if not as_json:
            stdout().print(benchmarks.table(result))
    if as_json:
        print(json.dumps(results, indent=1))
