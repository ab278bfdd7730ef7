"""Who may talk to the server, and how much: checks in front of every request, and the headers of every answer."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .settings import Settings

COOKIE = "assay-token"
LIMIT = 64 * 1024  # bytes of a request
LONG = {"/api/gemfilter": 2 * 1024 * 1024}  # a text to read
REPORTS = "/reports/"
_SAFE = ("GET", "HEAD", "OPTIONS")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'{styles}; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Middleware: a request that is not this site's own, or too long, or without the token, goes no further."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answered = _with_headers(scope, send)
        headers = Headers(scope=scope)
        refused = self._stranger(scope, headers) or self._unknown(scope, headers)
        if refused is None and scope["method"] not in _SAFE:
            body, refused = await _read(scope, headers, receive)
            receive = _again(body, receive)
        if refused is not None:
            await refused(scope, receive, answered)
        else:
            await self.app(scope, receive, answered)

    def _stranger(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a foreign Host, and whatever another site's page sends."""
        host = headers.get("host", "")
        if not self.settings.answers_to(host):
            return refusal(421, "this server has another name; open the address that it printed when it started")
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            return refusal(403, "requests from other sites are refused")
        fetched, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "")
        followed = scope["method"] in _SAFE and mode == "navigate"  # a link on another page may lead here
        if fetched not in ("same-origin", "none") and not followed:
            return refusal(403, "requests from other sites are refused")
        return None

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        """Ask for the token where there is one. A browser brings it once in the address and then as a cookie."""
        token = self.settings.token
        if not token:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        if given and scope["path"] == "/" and _equal(given, token):
            entered = RedirectResponse("/", 303)
            entered.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return entered
        bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
        if _equal(bearer, token) or _equal(_cookie(headers), token):
            return None
        return refusal(401, "this server asks for its token; open the address that it printed when it started")


def refusal(status: int, sentence: str) -> Response:
    return JSONResponse({"detail": sentence}, status)


async def _read(scope: Scope, headers: Headers, receive: Receive) -> tuple[bytes, Response | None]:
    """The whole body, unless it is longer than allowed or no JSON by its own account."""
    limit = LONG.get(scope["path"], LIMIT)
    length = headers.get("content-length", "0")
    too_long = refusal(413, f"a request here may have {limit // 1024} KiB at most")
    if not length.isdecimal() or len(length) > 12 or int(length) > limit:
        return b"", too_long
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"", refusal(400, "the request was broken off")
        body += message.get("body", b"")
        if len(body) > limit:
            return b"", too_long
        if not message.get("more_body", False):
            break
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        return b"", refusal(415, "a request here is written in application/json")
    return body, None


def _again(body: bytes, receive: Receive) -> Receive:
    """What was read, for whoever reads next."""
    waiting = [body]

    async def replay() -> Message:
        return {"type": "http.request", "body": waiting.pop()} if waiting else await receive()

    return replay


def _with_headers(scope: Scope, send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _headers(scope["path"]).items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def _headers(path: str) -> Mapping[str, str]:
    # Vega writes its own styles into a report's pages; no page may run a script that is not a file of the server's.
    styles = " 'unsafe-inline'" if path.startswith(REPORTS) else ""
    return {**_HEADERS, "content-security-policy": _POLICY.format(styles=styles)}


def _same(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.strip().lower()


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
