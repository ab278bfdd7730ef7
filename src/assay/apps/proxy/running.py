"""A proxy from names and options: the filter's layers alone, a socket, and the server on it."""

from __future__ import annotations

import socket as sockets
from collections.abc import Callable
from dataclasses import replace

from assay._extras import extra
from assay.apps.documents.retrievers import framed
from assay.apps.documents.setup import filter_of
from assay.apps.proxy.settings import Settings
from assay.apps.proxy.shortening import Shortener
from assay.methods.gemfilter import FilterIndex


def shortener_for(settings: Settings, name: str, *, layer: str, device: str, tell: Callable[[str], None]) -> Shortener:
    """The first layers of a model as a shortener; what is above them is never loaded."""
    loaded, chosen = filter_of(name, layer=layer, device=device, tell=tell)
    head, _ = framed(loaded.tokenizer, "?")
    return Shortener(
        FilterIndex(loaded.model, replace(chosen, keep=settings.keep), head=head), loaded.tokenizer, settings
    )


def listening(host: str, port: int) -> sockets.socket:
    """A socket, so that an address that is taken is known before a model is loaded."""
    kind = sockets.AF_INET6 if ":" in host else sockets.AF_INET
    made = sockets.socket(kind, sockets.SOCK_STREAM)
    made.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def serve(settings: Settings, shortener: Shortener, socket: sockets.socket) -> None:
    """Serve until it is told to stop. The access log is ours: the usual one would print query strings."""
    with extra("web", "the proxy"):
        import uvicorn

        from assay.apps.proxy.server import Proxy
    config = uvicorn.Config(Proxy(settings, shortener).app(), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[socket])
