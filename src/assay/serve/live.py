"""What goes on, told to every open page at once, as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

PAUSE = 0.15  # seconds between two batches: a page needs no more, and a busy run would send thousands
SILENCE = 15.0  # seconds after which a line without meaning keeps the connection open


class Hub:
    """Whoever listens gets the newest state of each job that changed since. Told from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[_Listener] = set()
        self.closed = False

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self.closed = loop, False

    def tell(self, document: dict[str, Any]) -> None:
        loop = self._loop
        if loop is not None and not self.closed:
            with contextlib.suppress(RuntimeError):  # the loop ended meanwhile, and everybody left
                loop.call_soon_threadsafe(self._pass_on, document)

    def _pass_on(self, document: dict[str, Any]) -> None:
        for listener in self._listeners:
            listener.waiting[document["id"]] = document
            listener.something.set()

    def close(self) -> None:
        """Let everybody go: a server that stops does not wait for pages that are still open."""
        self.closed = True
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for listener in self._listeners:
            listener.something.set()

    async def stream(self, known: list[dict[str, Any]]) -> AsyncIterator[str]:
        """All jobs that there are, and from then on those that change."""
        listener = _Listener()
        self._listeners.add(listener)
        try:
            yield _message("jobs", known)
            while not self.closed:
                try:
                    await asyncio.wait_for(listener.something.wait(), SILENCE)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                listener.something.clear()
                changed, listener.waiting = listener.waiting, {}
                for document in changed.values():
                    yield _message("job", document)
                await asyncio.sleep(PAUSE)
        finally:
            self._listeners.discard(listener)


class _Listener:
    def __init__(self) -> None:
        self.waiting: dict[str, dict[str, Any]] = {}
        self.something = asyncio.Event()


def _message(event: str, document: Any) -> str:
    return f"event: {event}\ndata: {json.dumps(document, ensure_ascii=False, allow_nan=False)}\n\n"
