"""The commands, gathered."""

from __future__ import annotations

from typing import Annotated

import typer

import assay
from assay.cli import benchmarks, gemfilter, runs, studies

app = typer.Typer(
    help="Assay: a laboratory for feature learning. Run a study, read its verdicts, look at its report.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"assay {assay.__version__}")
        raise typer.Exit


@app.callback()
def _front(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


for group in (studies, runs, benchmarks, gemfilter):
    group.register(app)
