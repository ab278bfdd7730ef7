"""Serving: one server for one folder of runs, until somebody stops it."""

from __future__ import annotations

import socket
import threading
import types
from collections.abc import Callable
from dataclasses import replace

import uvicorn
from filelock import FileLock, Timeout

from assay.lab import UserError

from .app import create_app
from .settings import Settings


class Server(uvicorn.Server):
    """Lets go of open pages when it is told to stop: their streams would keep it waiting."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], None]) -> None:
        super().__init__(config)
        self._let_go = let_go

    def handle_exit(self, sig: int, frame: types.FrameType | None) -> None:
        self._let_go()
        super().handle_exit(sig, frame)


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve until an interrupt. ``say`` hears the address to open."""
    lock = _only_one(settings)
    with lock, _socket(settings) as listening:
        settings = replace(settings, port=listening.getsockname()[1])
        app = create_app(settings)
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=5)
        threading.Thread(target=app.state.warm, daemon=True).start()
        say(f"the live lab is at {settings.address}  (Ctrl-C stops it)")
        Server(config, app.state.hub.close).run(sockets=[listening])


def _only_one(settings: Settings) -> FileLock:
    """Two servers on one folder would both believe that the list of jobs is theirs."""
    folder = settings.runs / ".serve"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "lock", thread_local=False)
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(
            f"another server is at work on {settings.runs}; stop it, or name another folder with --runs"
        ) from None
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}") from None
    return lock


def _socket(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(128)  # whoever opens the address at once waits, and is not refused
    except OSError as error:
        listening.close()
        why = error.strerror or error
        raise UserError(f"cannot listen at {settings.host}:{settings.port} ({why}); name another with --port") from None
    return listening
