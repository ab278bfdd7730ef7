"""One line on a terminal that says how far something has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Sequence[Item], what: str, show: bool | None = None) -> Iterator[Item]:
    """The items, with a line on standard error while they are worked on. ``show`` None: on a terminal only."""
    visible = sys.stderr.isatty() if show is None else show
    return _told(items, len(items), what) if visible else iter(items)


def _told(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    start = time.monotonic()
    try:
        for done, item in enumerate(items):
            left = f", about {(time.monotonic() - start) / done * (total - done):.0f} s left" if done else ""
            print(f"\r{what} {done + 1} of {total}{left}\033[K", end="", file=sys.stderr, flush=True)
            yield item
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
