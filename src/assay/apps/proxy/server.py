"""The server: everything is handed on, and long prompts go through the filter first."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI, Request, Response

from assay.apps.proxy.forwarding import forward
from assay.apps.proxy.incoming import body_of, client_of, gone, wish_of
from assay.apps.proxy.messages import Request as Read
from assay.apps.proxy.refusals import Refused
from assay.apps.proxy.settings import Settings
from assay.apps.proxy.shortening import Cancelled, Shortener, Shortening
from assay.apps.proxy.turns import TooMany, Turns

log = logging.getLogger("assay.proxy")
_PATHS = {"chat/completions": True, "completions": False}
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]


class Proxy:
    """Requests on their way to the upstream. The filter has one thread, and who wants it waits for a turn."""

    def __init__(self, settings: Settings, shortener: Shortener) -> None:
        self.settings, self.shortener = settings, shortener
        self.turns, self.worker = Turns(settings.queue), ThreadPoolExecutor(1, "filter")
        limits = httpx.Timeout(settings.read_seconds, connect=settings.connect_seconds)
        pool = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        # The environment's proxies and certificates are for other servers: this one is named.
        self.client = httpx.AsyncClient(timeout=limits, limits=pool, trust_env=False)

    def app(self) -> FastAPI:
        made = FastAPI(title="assay proxy", docs_url=None, redoc_url=None, openapi_url=None, lifespan=self._life)
        made.add_api_route("/assay/health", self.health, methods=["GET"])
        made.add_api_route("/{path:path}", self.answer, methods=_METHODS)
        return made

    @asynccontextmanager
    async def _life(self, _: FastAPI) -> AsyncIterator[None]:
        async with self.client:
            yield
        self.worker.shutdown(wait=False, cancel_futures=True)

    async def health(self) -> dict[str, Any]:
        settings = self.settings
        return {"status": "ok", "waiting": self.turns.waiting, "keep": settings.keep, "threshold": settings.long}

    async def answer(self, path: str, request: Request) -> Response:
        """Any request: read, shortened where that is due, handed on, and told of in the log."""
        begun = time.monotonic()
        short: Shortening | None = None
        try:
            body = await body_of(request, self.settings.largest)
            short = await self._shortened(path, request, body)
            response = await self._forwarded(path, request, body, short, begun)
        except Refused as refused:
            response = refused.response
        tokens = "" if short is None else f", {short.before} tokens to {short.after} in {short.seconds:.2f} s"
        log.info("%s /%s %s%s", request.method, path, response.status_code, tokens)
        return response

    async def _forwarded(
        self, path: str, request: Request, body: bytes, short: Shortening | None, begun: float
    ) -> Response:
        address = self.settings.address(path)
        if short is None:
            return await forward(self.client, request, address, body, {})
        body = json.dumps(short.body, ensure_ascii=False).encode()
        return await forward(
            self.client, request, address, body, short.headers(time.monotonic() - begun), short.usage()
        )

    async def _shortened(self, path: str, request: Request, body: bytes) -> Shortening | None:
        """The shortened request; None when it is handed on as it came."""
        chat = _PATHS.get(path.removeprefix("v1/").strip("/"))
        if request.method != "POST" or chat is None:
            return None
        wish = wish_of(request, self.settings)
        # A token has a character at least: short bodies need no counting.
        if not wish.on or len(body) <= self.settings.long or request.headers.get("content-encoding"):
            return None
        read = await self._read(body, chat, wish.whole_turn)
        return None if read is None else await self._filtered(request, read, wish.keep)

    async def _read(self, body: bytes, chat: bool, whole_turn: int) -> Read | None:
        """The texts of a request that is long enough and has something to shorten."""
        try:
            given = json.loads(body)
        except ValueError:
            return None  # the upstream says what is wrong with it
        if not isinstance(given, dict):
            return None
        read = await asyncio.to_thread(self.shortener.request, given, chat, whole_turn)
        if read is None or read.tokens <= self.settings.long or not read.long or not read.question.strip():
            return None
        return read

    async def _filtered(self, request: Request, read: Read, keep: int) -> Shortening:
        """One pass of the filter, as long as its client waits and the time allows."""
        stop = threading.Event()
        work = asyncio.create_task(self._in_turn(client_of(request), read, keep, stop))
        left = asyncio.create_task(gone(request))
        try:
            limit = self.settings.filter_seconds
            await asyncio.wait({work, left}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            if left.done():
                raise Refused(499, "client_closed_request", "the client closed the connection")
            raise Refused(503, "filter_timeout", f"the filter took more than {limit:g} seconds")
        except TooMany:
            sentence = f"{self.settings.queue} requests are waiting for the filter already"
            raise Refused(503, "filter_busy", sentence, {"retry-after": "10"}) from None
        except (ValueError, RuntimeError, Cancelled) as error:
            log.warning("the filter failed: %s", type(error).__name__)
            raise Refused(500, "filter_failed", f"the filter failed ({type(error).__name__})") from None
        finally:
            stop.set()
            left.cancel()
            # Who waits leaves the queue. A pass that runs ends at its next look, and the worker takes no other before.
            work.cancel()

    async def _in_turn(self, client: str, read: Read, keep: int, stop: threading.Event) -> Shortening:
        loop = asyncio.get_running_loop()
        async with self.turns.turn(client):
            return await loop.run_in_executor(
                self.worker, self.shortener.shorten, read, keep, lambda: not stop.is_set()
            )
