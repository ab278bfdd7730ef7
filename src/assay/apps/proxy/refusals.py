"""Requests that go no further."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

#: Seconds for which the rest of a body that was refused is read and thrown away.
_LINGER = 30.0


class Refused(Exception):
    """A request that is answered here, with an error in the form that clients of such servers know."""

    def __init__(self, status: int, kind: str, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        error = {"message": sentence, "type": kind, "param": None, "code": kind}
        self.response = JSONResponse({"error": error}, status_code=status, headers=dict(headers or {}))


class TooLarge(Refused):
    """A body that is refused while it is still on its way."""

    def __init__(self, sentence: str, rest: AsyncIterator[bytes]) -> None:
        super().__init__(413, "request_too_large", sentence)
        self.response = _Lingering(self.response, rest)


class _Lingering(JSONResponse):
    """Says no at once, then lets the client finish for a while: a connection that is closed with bytes unread is reset,
    and many clients, who read after they have sent everything, would lose the answer."""

    def __init__(self, said: JSONResponse, rest: AsyncIterator[bytes]) -> None:
        super().__init__(None, said.status_code, {"connection": "close"})
        self.body, self.rest = said.body, rest
        self.headers["content-length"] = str(len(said.body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(_LINGER):
                async for _ in self.rest:
                    pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})
