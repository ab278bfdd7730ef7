"""A request handed on and its answer handed back, as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from assay.apps.proxy import usage as usages
from assay.apps.proxy.refusals import Refused

# Headers of one connection, which do not go on.
_OF_THE_CONNECTION = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
    "expect",
}


async def forward(
    client: httpx.AsyncClient,
    request: Request,
    address: str,
    body: bytes,
    told: Mapping[str, str],
    usage: Mapping[str, Any] | None = None,
) -> Response:
    """Send a request on. What the upstream says comes back as it is, errors too, with ``told`` among the headers;
    ``usage`` is set beside the upstream's own counts where it tells them."""
    answer = await _sent(client, request, address, body, told)
    headers = {name: value for name, value in answer.headers.multi_items() if name.lower() not in _OF_THE_CONNECTION}
    kind = answer.headers.get("content-type", "")
    if usage is None or not ("application/json" in kind or "text/event-stream" in kind):
        return StreamingResponse(_closing(answer, answer.aiter_raw()), answer.status_code, {**headers, **told})
    headers.pop("content-encoding", None)  # what is read here is unpacked
    if "application/json" in kind:
        content = usages.in_answer(await _whole(answer, address, told), usage)
        return Response(content, answer.status_code, {**headers, **told})
    events = usages.in_stream(answer.aiter_bytes(), usage)
    return StreamingResponse(_closing(answer, events), answer.status_code, {**headers, **told})


async def _sent(
    client: httpx.AsyncClient, request: Request, address: str, body: bytes, told: Mapping[str, str]
) -> httpx.Response:
    """The upstream's answer, of which only the headers have come."""
    headers = [
        (name, value)
        for name, value in request.headers.items()
        if name.lower() not in _OF_THE_CONNECTION and not name.lower().startswith("x-assay-")
    ]
    address = f"{address}?{request.url.query}" if request.url.query else address
    made = client.build_request(request.method, address, headers=headers, content=body or None)
    try:
        return await client.send(made, stream=True)
    except httpx.HTTPError as error:
        raise _refused(error, address, told) from None


async def _whole(answer: httpx.Response, address: str, told: Mapping[str, str]) -> bytes:
    try:
        return await answer.aread()
    except httpx.HTTPError as error:
        raise _refused(error, address, told) from None
    finally:
        await answer.aclose()


def _refused(error: httpx.HTTPError, address: str, told: Mapping[str, str]) -> Refused:
    named = f"the upstream server at {_host(address)}"
    if isinstance(error, httpx.ConnectError):
        return Refused(502, "upstream_unreachable", f"{named} cannot be reached", told)
    if isinstance(error, httpx.TimeoutException):
        return Refused(504, "upstream_timeout", f"{named} did not answer in time", told)
    return Refused(502, "upstream_error", f"{named} broke off ({type(error).__name__})", told)


async def _closing(answer: httpx.Response, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """As they come; a client that leaves closes the upstream's connection, too."""
    try:
        async for piece in pieces:
            yield piece
    finally:
        await answer.aclose()


def _host(address: str) -> str:
    parts = httpx.URL(address)
    return f"{parts.scheme}://{parts.netloc.decode().rpartition('@')[2]}"
