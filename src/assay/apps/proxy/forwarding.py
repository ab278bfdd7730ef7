"""A request handed on and its answer handed back, as they come."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

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


def refusal(status: int, kind: str, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error in the form that clients of such servers know."""
    error = {"message": sentence, "type": kind, "param": None, "code": kind}
    return JSONResponse({"error": error}, status_code=status, headers=dict(headers or {}))


async def forward(
    client: httpx.AsyncClient, request: Request, address: str, body: bytes, told: Mapping[str, str], usage: Any = None
) -> Response:
    """Send a request on. What the upstream says comes back as it is, errors too, with ``told`` among the headers;
    ``usage`` is set beside the upstream's own counts where an answer comes whole."""
    headers = [
        (name, value)
        for name, value in request.headers.items()
        if name.lower() not in _OF_THE_CONNECTION and not name.lower().startswith("x-assay-")
    ]
    address = f"{address}?{request.url.query}" if request.url.query else address
    made = client.build_request(request.method, address, headers=headers, content=body or None)
    try:
        answer = await client.send(made, stream=True)
    except httpx.ConnectError:
        return refusal(502, "upstream_unreachable", f"the upstream server at {_host(address)} cannot be reached", told)
    except httpx.TimeoutException:
        return refusal(504, "upstream_timeout", f"the upstream server at {_host(address)} did not answer in time", told)
    except httpx.HTTPError as error:
        kind = type(error).__name__
        return refusal(502, "upstream_error", f"the upstream server at {_host(address)} broke off ({kind})", told)
    given = {name: value for name, value in answer.headers.multi_items() if name.lower() not in _OF_THE_CONNECTION}
    if usage is not None and "application/json" in answer.headers.get("content-type", ""):
        try:
            content = await answer.aread()
        except httpx.HTTPError as error:
            kind = type(error).__name__
            return refusal(502, "upstream_error", f"the upstream server at {_host(address)} broke off ({kind})", told)
        finally:
            await answer.aclose()
        given.pop("content-encoding", None)
        return Response(_with_usage(content, usage), answer.status_code, {**given, **told})
    return StreamingResponse(_pieces(answer), answer.status_code, {**given, **told})


async def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    """As they come; a client that leaves closes the upstream's connection, too."""
    try:
        async for piece in answer.aiter_raw():
            yield piece
    finally:
        await answer.aclose()


def _with_usage(content: bytes, usage: Mapping[str, Any]) -> bytes:
    try:
        made = json.loads(content)
    except ValueError:
        return content
    if not isinstance(made, dict) or not isinstance(made.get("usage"), dict):
        return content
    made["usage"]["assay"] = dict(usage)
    return json.dumps(made, ensure_ascii=False).encode()


def _host(address: str) -> str:
    parts = httpx.URL(address)
    return f"{parts.scheme}://{parts.netloc.decode().rpartition('@')[2]}"
