"""Who may use the filter next: one at a time, clients in turn, each client's requests in their order."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class TooMany(Exception):
    """As many wait as may."""


class Turns:
    """A client that sends many requests at once does not keep others waiting: turns go round the clients."""

    def __init__(self, most: int) -> None:
        self.most, self.waiting, self._busy = most, 0, False
        self._clients: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Wait for a turn, and hand it on at the end."""
        if self.waiting >= self.most:
            raise TooMany
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clients.setdefault(client, deque()).append(ready)
        self.waiting += 1
        self._next()
        try:
            await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled():
                self._done()
            raise
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._done()

    def _done(self) -> None:
        self._busy = False
        self._next()

    def _next(self) -> None:
        while not self._busy and self._clients:
            client, line = self._clients.popitem(last=False)
            ready = line.popleft()
            if line:
                self._clients[client] = line
            if not ready.cancelled():
                self._busy = True
                ready.set_result(None)
