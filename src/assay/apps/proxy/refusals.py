"""Requests that go no further."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi.responses import JSONResponse


class Refused(Exception):
    """A request that is answered here, with an error in the form that clients of such servers know."""

    def __init__(self, status: int, kind: str, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        error = {"message": sentence, "type": kind, "param": None, "code": kind}
        self.response = JSONResponse({"error": error}, status_code=status, headers=dict(headers or {}))
