"""What can go wrong that is the caller's to mend: one sentence each, exit status 2."""

from __future__ import annotations

import difflib
import inspect
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


class UserError(Exception):
    """Bad input. The message is one clear sentence that says what was wrong and what is allowed."""


class BrokenClaim(UserError):
    """A claim whose code is broken wherever it was judged: its author's to mend, exit status 1."""


class NotMeasured(Exception):
    """A query found no rows: the arm did not run. A claim that asks for it is `not run`; ``arms`` are those
    that it asked for."""

    def __init__(self, message: str = "", arms: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.arms = tuple(arms)


class BrokenQuery(NotMeasured):
    """A query that no run of this preset could answer: an arm, a metric or a column that does not exist. In a claim it
    is its author's mistake; a figure may ask to find out."""


class AmbiguousQuery(Exception):
    """A query left several rows per seed. Averaging them silently would hide a condition."""


def unknown(kind: str, name: str, allowed: Iterable[str]) -> UserError:
    """The error for a name that is not among ``allowed``, with the nearest one suggested."""
    names = list(allowed)
    begun = [candidate for candidate in names if name and candidate.startswith(name)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(name, names, n=1) or begun
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return UserError(f"unknown {kind} '{name}' (allowed: {', '.join(names) or 'none'}){hint}")


def position(function: Callable[..., Any]) -> str:
    """`` (file, line)`` of a function, or nothing where it has none."""
    code = getattr(plain(function), "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""


def position_of(error: BaseException) -> str:
    """`` (file, line)`` of the last place in an author's own files on the way to an error, or nothing."""
    lab, standard = Path(__file__).parent, sysconfig.get_paths()["stdlib"]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        installed = {"site-packages", "dist-packages"} & set(path.parts) or path.is_relative_to(standard)
        own = path.is_relative_to(lab.parent) or not installed
        if own and path.is_file() and not path.is_relative_to(lab):
            return f" ({frame.filename}, line {frame.lineno})"
    return ""


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that somebody wrote, without what decorates it."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    found: Callable[..., Any] = inspect.unwrap(function)
    return found
