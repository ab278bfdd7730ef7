"""Tokens before and after, beside the counts that the upstream itself reports as ``usage``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

_DATA = b"data:"


def in_answer(content: bytes, usage: Mapping[str, Any]) -> bytes:
    """A JSON answer with ``usage.assay``; without a usage of its own, or as something else, it stays as it is."""
    try:
        made = json.loads(content)
    except ValueError:
        return content
    if not isinstance(made, dict) or not isinstance(made.get("usage"), dict):
        return content
    made["usage"]["assay"] = dict(usage)
    return json.dumps(made, ensure_ascii=False).encode()


async def in_stream(pieces: AsyncIterator[bytes], usage: Mapping[str, Any]) -> AsyncIterator[bytes]:
    """A stream of events with ``usage.assay`` in those that have a usage: the last one, for a client that asks for
    ``stream_options.include_usage``. All other lines pass as they are, each as soon as it is whole."""
    rest = b""
    async for piece in pieces:
        whole, newline, rest = (rest + piece).rpartition(b"\n")
        if newline:
            yield b"\n".join(_line(line, usage) for line in whole.split(b"\n")) + newline
    if rest:
        yield _line(rest, usage)


def _line(line: bytes, usage: Mapping[str, Any]) -> bytes:
    if not line.startswith(_DATA) or b'"usage"' not in line:
        return line
    given = line.removeprefix(_DATA).strip()
    made = in_answer(given, usage)
    return line if made is given else line.replace(given, made)
