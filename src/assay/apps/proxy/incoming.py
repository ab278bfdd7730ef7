"""What a request brings along: its body, what its headers wish of the filter, whose it is, and whether they still
wait."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass

from fastapi import Request

from assay.apps.proxy.refusals import Refused, TooLarge
from assay.apps.proxy.settings import Settings

_LOOK_EVERY = 0.2


@dataclass(frozen=True)
class Wish:
    """What a request's headers ask of the filter."""

    on: bool
    keep: int
    whole_turn: int


async def body_of(request: Request, largest: int) -> bytes:
    """All of a body, or a refusal as soon as it is known to be too large."""
    sentence = f"the request is larger than the {largest / 2**20:g} MB that this proxy takes"
    coming, parts, size = request.stream(), [], 0
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > largest:
        raise TooLarge(sentence, coming)
    async for part in coming:
        size += len(part)
        if size > largest:
            raise TooLarge(sentence, coming)
        parts.append(part)
    return b"".join(parts)


def wish_of(request: Request, settings: Settings) -> Wish:
    switch = request.headers.get("x-assay-filter", "on").lower()
    if switch not in ("on", "off"):
        raise Refused(400, "bad_header", f"X-Assay-Filter takes on or off, not '{switch[:20]}'")
    keep = _tokens(request, "X-Assay-Keep", settings.keep, least=64)
    whole_turn = _tokens(request, "X-Assay-Whole-Turn", settings.whole_turn, least=settings.least_turn)
    return Wish(switch == "on", keep, whole_turn)


def _tokens(request: Request, name: str, usual: int, *, least: int) -> int:
    given = request.headers.get(name.lower())
    if given is None:
        return usual
    if not re.fullmatch("[0-9]{1,9}", given) or int(given) < least:
        raise Refused(400, "bad_header", f"{name} takes a number of tokens from {least} on, not '{given[:20]}'")
    return int(given)


def client_of(request: Request) -> str:
    """Tells clients apart for the queue, without keeping anybody's key."""
    host = request.client.host if request.client else ""
    key = request.headers.get("authorization", "")
    return hashlib.blake2b(f"{host} {key}".encode(), digest_size=16).hexdigest()


async def gone(request: Request) -> None:
    """Returns when the client has left."""
    while not await request.is_disconnected():
        await asyncio.sleep(_LOOK_EVERY)
