"""The live lab from the shell: `assay serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay._extras import extra
from assay.cli.options import RunsFolder, Studies, say
from assay.cli.refusals import one_sentence
from assay.lab import folders

ORDER = 30


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    port: Annotated[int, typer.Option("--port", help="The port; 0 for any that is free.")] = 8765,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen at; one that other machines reach asks for a token.")
    ] = "127.0.0.1",
    runs: RunsFolder = None,
    token: Annotated[
        str, typer.Option("--token", help="What a browser must show; 'new' makes one.", show_default=False)
    ] = "",
    model: Annotated[str, typer.Option("--model", help="The language model of the GemFilter page.")] = "smollm2",
    indexes: Annotated[
        Path | None, typer.Option("--indexes", help="A folder of indexes that the GemFilter page may be asked about.")
    ] = None,
    studies: Studies = None,
) -> None:
    """The live lab in the browser: change a parameter, start, watch, compare; see neurons move."""
    with one_sentence(), extra("web", "the live lab"):
        from assay.serve import server
        from assay.serve.settings import Settings, fresh_token
    folder, outside = folders.runs_folder(runs), folders.studies_folder(studies)
    word = fresh_token() if token == "new" else token
    made = Settings(folder.absolute(), outside, host, port, word, model, indexes.absolute() if indexes else None)
    server.serve(made, say)
