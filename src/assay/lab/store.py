"""The store: finished units and run manifests on disk. Atomic, checked, safe for two runs on one host.

<runs>/<study>/units/<key>/    measurements.parquet  arrays.safetensors  unit.json  SHA256SUMS
<runs>/<study>/manifests/<id>.json
<runs>/<study>/locks/<key>
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from .errors import UserError, unknown

_SUMS = "SHA256SUMS"


class DamagedUnit(Exception):
    """A stored file does not match its checksum or is missing."""


@dataclass(frozen=True)
class StoredUnit:
    frame: pl.DataFrame
    arrays: dict[str, np.ndarray[Any, Any]]
    meta: dict[str, Any]


@dataclass(frozen=True)
class Payload:
    """A finished unit as bytes, ready to be written; what a worker hands back."""

    files: dict[str, bytes]

    @classmethod
    def pack(cls, frame: pl.DataFrame, arrays: dict[str, np.ndarray[Any, Any]], meta: dict[str, Any]) -> Payload:
        parquet = io.BytesIO()
        frame.write_parquet(parquet)
        files = {"measurements.parquet": parquet.getvalue(), "unit.json": _json_bytes(meta)}
        if arrays:
            files["arrays.safetensors"] = save_arrays(arrays)
        return cls(files)


class Store:
    """The runs of one study under one folder."""

    def __init__(self, runs: Path, study: str) -> None:
        self.root = runs / study
        self.units = self.root / "units"
        self.manifests = self.root / "manifests"
        self.locks = self.root / "locks"

    def prepare(self) -> None:
        """Make the folders; an unwritable place is refused before any work is done."""
        for folder in (self.units, self.manifests, self.locks):
            with _one_sentence("write to the runs folder", folder):
                folder.mkdir(parents=True, exist_ok=True)
                probe = folder / f".probe-{secrets.token_hex(4)}"
                probe.touch()
                probe.unlink()

    def has(self, key: str) -> bool:
        """Whether a unit is stored whole. Raises DamagedUnit, naming the file, when it is stored but damaged."""
        folder = self.units / key
        with _one_sentence("read", folder):
            there = folder.exists()
        if there:
            _verify(folder)
        return there

    def whole(self, key: str) -> bool:
        """As ``has``, where damage counts as absence."""
        try:
            return self.has(key)
        except DamagedUnit:
            return False

    def write(self, key: str, payload: Payload) -> None:
        """Store a unit: everything goes to a temporary name, and one rename makes it visible."""
        folder = self.units / f".tmp-{key}-{os.getpid()}-{secrets.token_hex(4)}"
        with _one_sentence("write", self.units / key):
            folder.mkdir(parents=True)
            try:
                for name, content in {**payload.files, _SUMS: _sums(payload.files)}.items():
                    _write(folder / name, content)
                self.discard(key)
                folder.rename(self.units / key)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def read(self, key: str, *, arrays: bool = False) -> StoredUnit:
        """A unit's contents, checked against their checksums."""
        folder = self.units / key
        with _one_sentence("read", folder):
            there = folder.exists()
        if not there:
            raise DamagedUnit(f"unit {folder} is missing")
        contents = _verify(folder)
        frame = pl.read_parquet(contents["measurements.parquet"])
        stored = load_arrays(contents["arrays.safetensors"]) if arrays and "arrays.safetensors" in contents else {}
        return StoredUnit(frame, stored, json.loads(contents["unit.json"]))

    def discard(self, key: str) -> None:
        """Take a unit away (it was damaged). It disappears at once, by rename, and is removed afterwards."""
        folder = self.units / key
        with _one_sentence("take away", folder):
            if folder.exists():
                doomed = self.units / f".tmp-old-{key}-{secrets.token_hex(4)}"
                folder.rename(doomed)
                shutil.rmtree(doomed, ignore_errors=True)

    def try_lock(self, key: str, *, wait: bool = False) -> Lock | None:
        """The unit's lock, or None while another run holds it. The kernel frees it when its holder dies."""
        with _one_sentence("lock", self.locks / key):
            lock = Lock(os.open(self.locks / key, os.O_RDWR | os.O_CREAT, 0o644))
            try:
                fcntl.flock(lock.handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.release()
                return None
            except OSError:
                lock.release()
                raise
        return lock

    def sweep_leftovers(self) -> None:
        """Remove temporary folders and manifests of runs that were killed."""
        for folder in self.units.glob(".tmp-*"):
            key = folder.name.removeprefix(".tmp-").removeprefix("old-").split("-")[0]
            with locked(self.try_lock(key)) as lock:
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
        for path in self.manifests.glob(".tmp-*"):
            writer = path.name.rpartition("-")[2]
            if writer.isdecimal() and not _alive(int(writer)):
                with _one_sentence("remove", path):
                    path.unlink(missing_ok=True)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        path = self.manifests / f"{manifest['id']}.json"
        temporary = path.with_name(f".tmp-{path.name}-{os.getpid()}")
        with _one_sentence("write", path):
            _write(temporary, _sealed(json.loads(_json_bytes(manifest))))
            temporary.replace(path)

    def manifest_ids(self) -> list[str]:
        """All runs, oldest first."""
        # Not by glob(), to which a folder that may not be read is an empty one.
        with _one_sentence("read", self.manifests):
            try:
                names = os.listdir(self.manifests)
            except (FileNotFoundError, NotADirectoryError):
                names = []
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and name[0] != ".")

    def manifest(self, run: str) -> dict[str, Any]:
        path = self.manifests / f"{run}.json"
        with _one_sentence("read", path):
            if not path.exists():
                raise unknown("run", run, self.manifest_ids())
            content = path.read_bytes()
        with _one_sentence("read", self.units):  # else every unit of the run would be a surprise of its own
            if self.units.exists() and not os.access(self.units, os.R_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        try:
            loaded: dict[str, Any] = json.loads(content)
            del loaded["sha256"]
            whole = content == _sealed(loaded)
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise UserError(f"the manifest {path} is damaged; remove it and run the study again")
        return loaded

    def newest(self, preset: str | None = None) -> dict[str, Any] | None:
        """The newest manifest, of one preset when given."""
        for run in reversed(self.manifest_ids()):
            manifest = self.manifest(run)
            if preset is None or manifest["preset"] == preset:
                return manifest
        return None


@dataclass
class Lock:
    handle: int

    def release(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


@contextmanager
def locked(lock: Lock | None) -> Iterator[Lock | None]:
    try:
        yield lock
    finally:
        if lock is not None:
            lock.release()


@contextmanager
def _one_sentence(action: str, path: Path) -> Iterator[None]:
    """What the system refuses under the runs folder is the caller's to mend: a full disk, another user's files."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot {action} {path}: {error.strerror or error}") from None


def _content(path: Path) -> bytes:
    """A unit's file. One that may not be read is no damage: computing it again would throw away what is whole."""
    try:
        return path.read_bytes()
    except PermissionError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        raise DamagedUnit(f"{path} is missing") from None
    except OSError as error:
        raise DamagedUnit(f"{path} cannot be read: {error.strerror or error}") from None


def _verify(folder: Path) -> dict[str, bytes]:
    written = _content(folder / _SUMS)
    try:
        lines = written.decode().splitlines()
    except UnicodeDecodeError:
        raise DamagedUnit(f"{folder / _SUMS} cannot be read") from None
    contents: dict[str, bytes] = {}
    for line in lines:
        digest, _, name = line.partition("  ")
        path = folder / name
        contents[name] = _content(path)
        if _sha(contents[name]) != digest:
            raise DamagedUnit(f"{path} does not match its checksum")
    if not {"measurements.parquet", "unit.json"} <= contents.keys():
        raise DamagedUnit(f"{folder / _SUMS} does not list every file")
    if (folder / "arrays.safetensors").exists() and "arrays.safetensors" not in contents:
        raise DamagedUnit(f"{folder / _SUMS} does not list every file")
    if written != _sums(contents):
        raise DamagedUnit(f"{folder / _SUMS} is not as it was written")
    return contents


def _sums(files: Mapping[str, bytes]) -> bytes:
    return "".join(f"{_sha(content)}  {name}\n" for name, content in sorted(files.items())).encode()


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _json_bytes(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, default=str) + "\n").encode()


def _sealed(manifest: dict[str, Any]) -> bytes:
    """A manifest as bytes, with its own checksum in it."""
    return _json_bytes({**manifest, "sha256": _sha(_json_bytes(manifest))})


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another user's
        return True
    return True


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
