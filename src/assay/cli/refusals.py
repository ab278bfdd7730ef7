"""What commands refuse in one sentence: files that cannot be read or written, and what a method says no to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.lab.errors import UserError


@contextmanager
def one_sentence() -> Iterator[None]:
    """What a method refuses is bad input here; so is a model that cannot be found."""
    try:
        yield
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(words[0].rstrip(".")) from None
    except Exception as error:
        # A damaged checkpoint or a full disk, in the words of the library that reads and writes weights.
        if type(error).__name__ != "SafetensorError":
            raise
        what = "written" if str(error).startswith("Error while serializing") else "read"
        raise UserError(f"the model's weights cannot be {what}: {error}") from None


def text_of(path: Path) -> str:
    """The text of a file, without the mark that some editors put in front of it."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise UserError(f"cannot read {path}: {reason}") from None


def writable(path: Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Refuse a place before minutes of work go there in vain."""
    if path is None:
        return
    if suffixes and path.suffix not in suffixes:
        raise UserError(f"cannot write {path}: the formats are {', '.join(suffixes[:-1])} and {suffixes[-1]}")
    try:
        with path.open("a"):
            pass
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def reachable(path: Path | None) -> None:
    """The same for a file whose folders are made when it is written."""
    if path is None:
        return
    place = next(folder for folder in path.absolute().parents if folder.exists())
    if not place.is_dir():
        raise UserError(f"cannot write {path}: {place} is no folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"cannot write {path}: nothing can be written in {place}")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")


def written(path: Path, text: str) -> None:
    """Write a text; a disk that is full by now is told."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
