"""The server: everything is handed on, and long prompts go through the filter first."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI, Request, Response

from assay.apps.proxy.forwarding import forward, refusal
from assay.apps.proxy.settings import Settings
from assay.apps.proxy.shortening import Cancelled, Shortener, Shortening
from assay.apps.proxy.turns import TooMany, Turns

log = logging.getLogger("assay.proxy")
_PATHS = {"chat/completions": True, "completions": False}
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
_LOOK_EVERY = 0.2


class _Refused(Exception):
    """A request that goes no further."""

    def __init__(self, response: Response) -> None:
        self.response = response


@dataclass(frozen=True)
class _Wish:
    """What a request's headers ask of the filter."""

    on: bool
    keep: int


def make_app(settings: Settings, shortener: Shortener, *, transport: Any = None) -> FastAPI:
    """The application. ``transport`` stands in for the network in tests."""
    turns, worker = Turns(settings.queue), ThreadPoolExecutor(1, "filter")
    state: dict[str, httpx.AsyncClient] = {}

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        limits = httpx.Timeout(settings.read_seconds, connect=settings.connect_seconds)
        pool = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        # The environment's proxies and certificates are for other servers: this one is named.
        async with httpx.AsyncClient(timeout=limits, limits=pool, transport=transport, trust_env=False) as client:
            state["client"] = client
            yield
        worker.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(title="assay proxy", docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)

    async def health() -> dict[str, Any]:
        return {"status": "ok", "waiting": turns.waiting, "keep": settings.keep, "threshold": settings.long}

    async def any_request(path: str, request: Request) -> Response:
        begun = time.monotonic()
        short: Shortening | None = None
        told: dict[str, str] = {}
        try:
            body = await _body(request, settings.largest)
            if request.method == "POST" and (chat := _PATHS.get(path.removeprefix("v1/").strip("/"))) is not None:
                short = await _shortened(request, body, chat)
            if short is not None:
                body = json.dumps(short.body, ensure_ascii=False).encode()
                told = _headers(short, time.monotonic() - begun)
            usage = None if short is None else _usage(short)
            response = await forward(state["client"], request, settings.address(path), body, told, usage)
        except _Refused as refused:
            response = refused.response
        tokens = "" if short is None else f", {short.before} tokens to {short.after} in {short.seconds:.2f} s"
        log.info("%s /%s %s%s", request.method, path, response.status_code, tokens)
        return response

    async def _shortened(request: Request, body: bytes, chat: bool) -> Shortening | None:
        """The shortened request; None when it is handed on as it came."""
        wish = _wish(request, settings)
        # A token has a character at least: short bodies need no counting.
        if not wish.on or len(body) <= settings.long or request.headers.get("content-encoding"):
            return None
        try:
            given = json.loads(body)
        except ValueError:
            return None  # the upstream says what is wrong with it
        if not isinstance(given, dict):
            return None
        read = await asyncio.to_thread(shortener.request, given, chat)
        if read is None or read.tokens <= settings.long or not read.long or not read.question.strip():
            return None
        stop = threading.Event()
        loop = asyncio.get_running_loop()

        async def work() -> Shortening:
            async with turns.turn(_client(request)):
                return await loop.run_in_executor(worker, shortener.shorten, read, wish.keep, lambda: not stop.is_set())

        task = asyncio.create_task(work())
        gone = asyncio.create_task(_gone(request))
        try:
            await asyncio.wait({task, gone}, timeout=settings.filter_seconds, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            left = gone.done()
            raise _Refused(
                refusal(499, "client_closed_request", "the client closed the connection")
                if left
                else refusal(503, "filter_timeout", f"the filter took more than {settings.filter_seconds:g} seconds")
            )
        except TooMany:
            sentence = f"{settings.queue} requests are waiting for the filter already"
            raise _Refused(refusal(503, "filter_busy", sentence, {"retry-after": "10"})) from None
        except (ValueError, RuntimeError, Cancelled) as error:
            log.warning("the filter failed: %s", type(error).__name__)
            raise _Refused(refusal(500, "filter_failed", f"the filter failed ({type(error).__name__})")) from None
        finally:
            stop.set()
            gone.cancel()
            # Who waits leaves the queue. A pass that runs ends at its next look, and the worker takes no other before.
            task.cancel()

    app.add_api_route("/assay/health", health, methods=["GET"])
    app.add_api_route("/{path:path}", any_request, methods=_METHODS)
    return app


async def _body(request: Request, largest: int) -> bytes:
    """All of a body, or a refusal as soon as it is too large."""
    sentence = f"the request is larger than the {largest / 2**20:g} MB that this proxy takes"
    closed = {"connection": "close"}
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > largest:
        raise _Refused(refusal(413, "request_too_large", sentence, closed))
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest:
            raise _Refused(refusal(413, "request_too_large", sentence, closed))
        parts.append(part)
    return b"".join(parts)


def _wish(request: Request, settings: Settings) -> _Wish:
    switch = request.headers.get("x-assay-filter", "on").lower()
    if switch not in ("on", "off"):
        raise _Refused(refusal(400, "bad_header", f"X-Assay-Filter takes on or off, not '{switch[:20]}'"))
    keep = request.headers.get("x-assay-keep", str(settings.keep))
    if not keep.isdecimal() or not 64 <= int(keep) <= 10**6:
        raise _Refused(
            refusal(400, "bad_header", f"X-Assay-Keep takes a number of tokens from 64 on, not '{keep[:20]}'")
        )
    return _Wish(switch == "on", int(keep))


def _client(request: Request) -> str:
    """Tells clients apart for the queue, without keeping anybody's key."""
    host = request.client.host if request.client else ""
    key = request.headers.get("authorization", "")
    return hashlib.blake2b(f"{host} {key}".encode(), digest_size=16).hexdigest()


async def _gone(request: Request) -> None:
    while not await request.is_disconnected():
        await asyncio.sleep(_LOOK_EVERY)


def _usage(short: Shortening) -> dict[str, Any]:
    return {"tokens_before": short.before, "tokens_after": short.after, "filter_seconds": round(short.seconds, 3)}


def _headers(short: Shortening, waited: float) -> dict[str, str]:
    return {
        "x-assay-tokens-before": str(short.before),
        "x-assay-tokens-after": str(short.after),
        "x-assay-filter-seconds": f"{short.seconds:.3f}",
        "x-assay-total-seconds": f"{waited:.3f}",
    }
