"""What can go wrong that is the caller's to mend: one sentence each, exit status 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Bad input. The message is one clear sentence that says what was wrong and what is allowed."""


class NotMeasured(Exception):
    """A query found no rows: the arm did not run. A claim that asks for it is `not run`."""


class AmbiguousQuery(Exception):
    """A query left several rows per seed. Averaging them silently would hide a condition."""


def unknown(kind: str, name: str, allowed: Iterable[str]) -> UserError:
    """The error for a name that is not among ``allowed``, with the nearest one suggested."""
    names = list(allowed)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return UserError(f"unknown {kind} '{name}' (allowed: {', '.join(names) or 'none'}){hint}")
