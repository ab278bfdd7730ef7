"""Options that several commands share, and where output goes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

_PIPE = 150  # a pipe has no width of its own


def stdout() -> Console:
    """Standard output as wide as the terminal, or as ``$COLUMNS`` says."""
    return Console(highlight=False, width=_width(sys.stdout.isatty()))


def stderr() -> Console:
    return Console(stderr=True, highlight=False, width=_width(sys.stderr.isatty()))


def _width(terminal: bool) -> int | None:
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return None if terminal else _PIPE


def say(sentence: str) -> None:
    """A sentence about the command itself, on standard error."""
    print(f"assay: {sentence}", file=sys.stderr)


def _names(incomplete: str) -> list[str]:
    """Names of studies for the shell's completion, by their folders: nothing is imported."""
    import assay

    folders = [Path(assay.__file__).parent / "studies"]
    folders += [Path(folder) for folder in os.environ.get("ASSAY_STUDIES", "").split(os.pathsep) if folder]
    names = sorted(path.parent.name.replace("_", "-") for folder in folders for path in folder.glob("*/study.py"))
    return [name for name in names if name.startswith(incomplete)]


def _presets(incomplete: str) -> list[str]:
    return [name for name in ("smoke", "laptop", "paper") if name.startswith(incomplete)]


RunsFolder = Annotated[
    Path | None, typer.Option("--runs", help="Folder of stored runs ($ASSAY_RUNS, else runs).", show_default=False)
]
Studies = Annotated[str | None, typer.Option("--studies", help="A folder with studies of your own ($ASSAY_STUDIES).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output and nothing else.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or auto.")]
Backend = Annotated[str, typer.Option(help="loky, ray, dask or slurm.")]
Address = Annotated[str | None, typer.Option(help="Address of a ray or dask cluster.")]
Preset = Annotated[str, typer.Option(help="smoke, laptop or paper.", autocompletion=_presets)]
OfPreset = Annotated[str | None, typer.Option("--preset", help="Only runs of this preset.", autocompletion=_presets)]
OneRun = Annotated[str | None, typer.Option("--run", help="The id or name of a stored run instead of the newest.")]
OneStudy = Annotated[str, typer.Argument(metavar="STUDY", help="The study.", autocompletion=_names)]
SomeStudies = Annotated[
    list[str], typer.Argument(metavar="STUDY...", help="Studies to run, or 'all'.", autocompletion=_names)
]
StoredStudies = Annotated[
    list[str] | None,
    typer.Argument(metavar="[STUDY...]", help="All studies with runs by default.", autocompletion=_names),
]
ListedStudies = Annotated[
    list[str] | None,
    typer.Argument(metavar="[STUDY...]", help="Arms, parameters, settings and claims of these.", autocompletion=_names),
]
