"""What an extra brings is imported where it is used; where it is missing, one sentence names the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtra(ImportError, RuntimeError):
    """What was asked for needs an extra that is not installed. It is a RuntimeError as well: whoever turns what a
    method refuses into a sentence for a user catches those."""


def needs(what: str, name: str) -> str:
    """The one sentence for a missing extra."""
    return f"{what} needs the extra '{name}' (pip install 'assay-lab[{name}]')"


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Around imports from the extra ``name``: a module that is not there raises MissingExtra, which says that ``what``
    needs the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(needs(what, name), name=error.name) from error
