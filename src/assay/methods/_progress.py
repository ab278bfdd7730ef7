"""One line of progress on a terminal, for work that takes longer than a few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")
_PATIENCE = 3.0


def counted(items: Sequence[_Item], what: str, *, show: bool = True) -> Iterator[_Item]:
    """The items one by one. On a terminal a line says how many are done, once that takes longer than a moment; it is
    wiped in the end, and nothing is said elsewhere."""
    begin, told = time.monotonic(), False
    try:
        for done, item in enumerate(items):
            passed = time.monotonic() - begin
            if show and passed > _PATIENCE and sys.stderr.isatty():
                left = passed / done * (len(items) - done)
                print(f"\r{what}: {done} of {len(items)}, about {left:.0f} s left \x1b[K", end="", file=sys.stderr)
                told = True
            yield item
    finally:
        if told:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
