"""Files that can be trusted: written through to the disk, sealed with a checksum, and refused in one sentence."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import UserError

SUMS = "SHA256SUMS"


class DamagedUnit(Exception):
    """A stored file does not match its checksum or is missing."""


@contextmanager
def one_sentence(action: str, path: Path) -> Iterator[None]:
    """What the system refuses under the runs folder is the caller's to mend: a full disk, another user's files."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot {action} {path}: {error.strerror or error}") from None


def content_of(path: Path) -> bytes:
    """A unit's file. One that may not be read is no damage: computing it again would throw away what is whole."""
    try:
        return path.read_bytes()
    except PermissionError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        raise DamagedUnit(f"{path} is missing") from None
    except OSError as error:
        raise DamagedUnit(f"{path} cannot be read: {error.strerror or error}") from None


def verify(folder: Path) -> None:
    written = content_of(folder / SUMS)
    try:
        lines = written.decode().splitlines()
    except UnicodeDecodeError:
        raise DamagedUnit(f"{folder / SUMS} cannot be read") from None
    contents: dict[str, bytes] = {}
    for line in lines:
        digest, _, name = line.partition("  ")
        path = folder / name
        contents[name] = content_of(path)
        if sha(contents[name]) != digest:
            raise DamagedUnit(f"{path} does not match its checksum")
    if not {"measurements.parquet", "unit.json"} <= contents.keys():
        raise DamagedUnit(f"{folder / SUMS} does not list every file")
    if (folder / "arrays.safetensors").exists() and "arrays.safetensors" not in contents:
        raise DamagedUnit(f"{folder / SUMS} does not list every file")
    if written != sums(contents):
        raise DamagedUnit(f"{folder / SUMS} is not as it was written")


def signature(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of a unit's files: what has not been written since it was checked is as it was."""
    try:
        with os.scandir(folder) as entries:
            return tuple(sorted((e.name, e.stat().st_mtime_ns, e.stat().st_size) for e in entries))
    except OSError:
        return ()


def sums(files: Mapping[str, bytes]) -> bytes:
    return "".join(f"{sha(content)}  {name}\n" for name, content in sorted(files.items())).encode()


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def json_bytes(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, default=str) + "\n").encode()


def sealed(manifest: dict[str, Any]) -> bytes:
    """A manifest as bytes, with its own checksum in it."""
    return json_bytes({**manifest, "sha256": sha(json_bytes(manifest))})


def unsealed(path: Path) -> dict[str, Any] | None:
    """A sealed document; None when it is absent or not as it was written."""
    with one_sentence("read", path):
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
    try:
        loaded: dict[str, Any] = json.loads(content)
        del loaded["sha256"]
        whole = content == sealed(loaded)
    except (ValueError, KeyError, TypeError):
        return None
    return loaded if whole else None


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another user's
        return True
    return True


def write_through(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
