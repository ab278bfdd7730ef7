"""An OpenAI-compatible server in front of another one: `assay proxy`."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from assay.cli.options import Device, say
from assay.cli.refusals import one_sentence
from assay.lab.backends import pick_device
from assay.lab.errors import UserError

ORDER = 46


def register(app: typer.Typer) -> None:
    app.command("proxy")(proxy)


def proxy(
    upstream: Annotated[str, typer.Option("--upstream", help="The server behind, such as http://127.0.0.1:8000/v1.")],
    filter_model: Annotated[
        str, typer.Option("--filter-model", help="A hub name, a model folder, a .gguf file, or 'smollm2'.")
    ] = "smollm2",
    layer: Annotated[str, typer.Option("--layer", help="The filter layer, or 'auto'.")] = "auto",
    keep: Annotated[int, typer.Option("--keep", help="Tokens that stay of what may be shortened.")] = 1024,
    threshold: Annotated[
        int | None, typer.Option("--threshold", help="Longer prompts are shortened; twice --keep by default.")
    ] = None,
    whole_turn: Annotated[
        int,
        typer.Option(
            "--whole-turn",
            help="A last user turn of up to so many tokens stays whole; of a longer one the middle may be shortened.",
        ),
    ] = 512,
    host: Annotated[str, typer.Option("--host", help="Where to listen; others than this machine need another.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0 takes a free one.")] = 8100,
    largest: Annotated[int, typer.Option("--largest", min=1, help="MB of a request at most.")] = 32,
    queue: Annotated[int, typer.Option("--queue", help="Requests that may wait for the filter.")] = 64,
    filter_seconds: Annotated[
        float, typer.Option("--filter-seconds", help="Seconds that a request may wait for the filter and its work.")
    ] = 600.0,
    read_seconds: Annotated[
        float, typer.Option("--read-seconds", help="Seconds that the server behind may be silent.")
    ] = 600.0,
    device: Device = "cpu",
) -> None:
    """Shorten long prompts by an early layer of a model, and hand everything on to another server."""
    with one_sentence():
        from assay.apps.proxy.running import listening, serve, shortener_for
        from assay.apps.proxy.settings import Settings

        settings = Settings(
            upstream=upstream,
            keep=keep,
            threshold=threshold,
            whole_turn=whole_turn,
            largest=largest * 2**20,
            queue=queue,
            filter_seconds=filter_seconds,
            read_seconds=read_seconds,
        )
        try:
            socket = listening(host, port)
        except OSError as error:
            raise UserError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    with socket:
        with one_sentence():
            shortener = shortener_for(settings, filter_model, layer=layer, device=pick_device(device), tell=say)
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        logging.getLogger("assay.proxy").setLevel(logging.INFO)
        host, port = socket.getsockname()[:2]
        say(f"prompts of more than {settings.long:,} tokens are shortened to about {settings.keep:,}, then {upstream}")
        say(f"listening on http://{host}:{port}/v1")
        serve(settings, shortener, socket)
