"""The store: finished units and run manifests on disk. Atomic, checked, safe for two runs on one host.

<runs>/<study>/units/<key>/    measurements.parquet  arrays.safetensors  unit.json  SHA256SUMS
<runs>/<study>/manifests/<id>.json
<runs>/<study>/verdicts/<id>.json        what a run's claims came to, until their code or the units change
<runs>/<study>/checkpoints/<key>/        of units in flight
<runs>/<study>/progress/<key>.progress   of units that workers compute
<runs>/<study>/locks/<key>

A unit's key is the hash of its address, one of the files that it was computed from if it read any, and the range of
its seeds: ``0f3a….0-7`` or ``0f3a…+91c2….0-7``. What is stored of a seed is so found by a look at the folder, whatever
the number that was asked for, and whether or not the files are on this machine.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .documents import Documents
from .errors import UserError
from .files import (
    SUMS,
    DamagedUnit,
    alive,
    content_of,
    json_bytes,
    one_sentence,
    sha,
    signature,
    sums,
    verify,
    write_through,
)

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from filelock import BaseFileLock

_FORGOTTEN = 30 * 24 * 3600.0  # seconds after which a checkpoint that nobody went on from is removed
_KEY = re.compile(r"([0-9a-f]{24})(?:\+([0-9a-f]{8}))?\.(\d+)-(\d+)")


@dataclass(frozen=True)
class StoredUnit:
    frame: pl.DataFrame
    arrays: dict[str, np.ndarray[Any, Any]]
    meta: dict[str, Any]


@dataclass(frozen=True)
class StoredRange:
    """A stored unit as its name tells it: the address, its inputs and the seeds from ``first`` to ``last``."""

    key: str
    address: str
    inputs: str
    first: int
    last: int


def unit_key(address: str, inputs: str, seeds: tuple[int, ...]) -> str:
    return f"{address}{f'+{inputs}' if inputs else ''}.{seeds[0]}-{seeds[-1]}"


@dataclass(frozen=True)
class Payload:
    """A finished unit as bytes, ready to be written; what a worker hands back."""

    files: dict[str, bytes]

    @classmethod
    def pack(cls, frame: pl.DataFrame, arrays: dict[str, np.ndarray[Any, Any]], meta: dict[str, Any]) -> Payload:
        from safetensors.numpy import save as save_arrays

        parquet = io.BytesIO()
        frame.write_parquet(parquet)
        files = {"measurements.parquet": parquet.getvalue(), "unit.json": json_bytes(meta)}
        if arrays:
            files["arrays.safetensors"] = save_arrays(arrays)
        return cls(files)


class Store(Documents):
    """The runs of one study under one folder. One object serves one run or one question: it checks each unit's files
    against their checksums once, and again only when they have been written since."""

    def __init__(self, runs: Path, study: str) -> None:
        super().__init__(runs / study)
        self.runs = runs
        self.study = study
        self.checkpoints = self.root / "checkpoints"
        self.progress = self.root / "progress"
        self.locks = self.root / "locks"
        self._checked: dict[str, tuple[tuple[str, int, int], ...]] = {}

    def prepare(self) -> None:
        """Make the folders; an unwritable place is refused before any work is done."""
        for folder in (self.units, self.manifests, self.cells, self.progress, self.locks):
            with one_sentence("write to the runs folder", folder):
                folder.mkdir(parents=True, exist_ok=True)
                probe = folder / f".probe-{secrets.token_hex(4)}"
                probe.touch()
                probe.unlink()

    def has(self, key: str) -> bool:
        """Whether a unit is stored whole. Raises DamagedUnit, naming the file, when it is stored but damaged."""
        folder = self.units / key
        with one_sentence("read", folder):
            there = folder.exists()
        if there:
            self._verify(key)
        return there

    def _verify(self, key: str) -> None:
        folder = self.units / key
        if self._checked.get(key) != signature(folder):
            verify(folder)
            self._checked[key] = signature(folder)

    def ranges(self) -> dict[str, list[StoredRange]]:
        """What is stored, by address, without opening a file."""
        with one_sentence("read", self.units):
            try:
                names = os.listdir(self.units)
            except (FileNotFoundError, NotADirectoryError):
                names = []
        found: dict[str, list[StoredRange]] = {}
        for name in sorted(names):
            if match := _KEY.fullmatch(name):
                unit = StoredRange(name, match[1], match[2] or "", int(match[3]), int(match[4]))
                found.setdefault(unit.address, []).append(unit)
        return found

    def meta(self, key: str) -> dict[str, Any] | None:
        """What is noted of a unit, with no other file looked at; None where it cannot be read or is damaged."""
        try:
            content = (self.units / key / "unit.json").read_bytes()
            sealed_by = (self.units / key / SUMS).read_bytes()
        except OSError:
            return None
        if f"{sha(content)}  unit.json\n".encode() not in sealed_by:
            return None
        noted: dict[str, Any] = json.loads(content)
        return noted

    def has_name(self, key: str) -> bool:
        """Whether a unit of this name is there, unchecked."""
        return (self.units / key).exists()

    def whole(self, key: str) -> bool:
        """As ``has``, where damage counts as absence."""
        try:
            return self.has(key)
        except DamagedUnit:
            return False

    def write(self, key: str, payload: Payload) -> None:
        """Store a unit: everything goes to a temporary name, and one rename makes it visible."""
        folder = self.units / f".tmp-{key}~{os.getpid()}-{secrets.token_hex(4)}"
        with one_sentence("write", self.units / key):
            folder.mkdir(parents=True)
            try:
                for name, content in {**payload.files, SUMS: sums(payload.files)}.items():
                    write_through(folder / name, content)
                self.discard(key)
                folder.rename(self.units / key)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def read(self, key: str, *, arrays: bool = False) -> StoredUnit:
        """A unit's contents, checked against their checksums."""
        folder = self.units / key
        with one_sentence("read", folder):
            there = folder.exists()
        if not there:
            raise DamagedUnit(f"unit {folder} is missing")
        import polars as pl
        from safetensors.numpy import load as load_arrays

        self._verify(key)
        frame = pl.read_parquet(content_of(folder / "measurements.parquet"))
        kept = folder / "arrays.safetensors"
        stored = load_arrays(content_of(kept)) if arrays and kept.exists() else {}
        return StoredUnit(frame, stored, json.loads(content_of(folder / "unit.json")))

    def discard(self, key: str) -> None:
        """Take a unit away (it was damaged). It disappears at once, by rename, and is removed afterwards."""
        folder = self.units / key
        with one_sentence("take away", folder):
            if folder.exists():
                doomed = self.units / f".tmp-old-{key}~{secrets.token_hex(4)}"
                folder.rename(doomed)
                shutil.rmtree(doomed, ignore_errors=True)

    def try_lock(self, key: str, *, wait: bool = False) -> Lock | None:
        """The unit's lock, or None while another run holds it. The kernel frees it when its holder dies."""
        from filelock import FileLock, Timeout

        with one_sentence("lock", self.locks / key):
            lock = FileLock(self.locks / key, thread_local=False)
            try:
                lock.acquire(blocking=wait)
            except Timeout:
                return None
        return Lock(lock)

    def clear_checkpoints(self, key: str) -> None:
        """Remove what a unit kept on its way, now that it is stored."""
        shutil.rmtree(self.checkpoints / key, ignore_errors=True)

    def sweep_leftovers(self) -> None:
        """Remove temporary folders and manifests of runs that were killed."""
        for folder in self.units.glob(".tmp-*"):
            key = folder.name.removeprefix(".tmp-").removeprefix("old-").rpartition("~")[0]
            with locked(self.try_lock(key)) as lock:
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
        for folder in self.checkpoints.glob("*"):
            with locked(self.try_lock(folder.name)) as lock, suppress(OSError):
                old = self.has_name(folder.name) or time.time() - folder.stat().st_mtime > _FORGOTTEN
                if lock is not None and old:
                    shutil.rmtree(folder, ignore_errors=True)
        for path in (*self.manifests.glob(".tmp-*"), *self.cells.glob(".tmp-*")):
            writer = path.name.rpartition("-")[2]
            if writer.isdecimal() and not alive(int(writer)):
                with one_sentence("remove", path):
                    path.unlink(missing_ok=True)

    def checksums(self, keys: Iterable[str]) -> str:
        """One hash over the contents of units, each of which is checked. Raises DamagedUnit."""
        digest = hashlib.sha256()
        for key in keys:
            there = self.has(key)
            digest.update(f"{key}\n".encode() + (content_of(self.units / key / SUMS) if there else b""))
        return digest.hexdigest()

    def remove_run(self, run: str) -> int:
        """Take a run away, and the units that no other run lists; returns the bytes that are free again."""
        doomed = self.manifest(run)
        if any(self.is_locked(unit.key) for unit in doomed.units):
            raise UserError(f"run {doomed.id} is still at work; stop it before you remove it")
        readable = self.readable_manifests() + self.readable_manifests(cells=True)
        others = {unit.key for m in readable if m.id != doomed.id for unit in m.units}
        # What a manifest lists that cannot be read, nobody knows: then no unit is taken away.
        known = len(readable) == len(self.manifest_ids()) + len(self.manifest_ids(cells=True))
        freed = 0
        for unit in doomed.units if known else ():
            if unit.key not in others and (self.units / unit.key).exists():
                freed += self.size([unit.key])
                self.discard(unit.key)
        for path in (self._place(doomed), self.verdicts / f"{doomed.id}.json"):
            with one_sentence("remove", path):
                freed += path.stat().st_size if path.exists() else 0
                path.unlink(missing_ok=True)
        return freed

    def is_locked(self, key: str) -> bool:
        """Whether a run holds the unit at this moment."""
        if not (self.locks / key).exists():
            return False
        with locked(self.try_lock(key)) as lock:
            return lock is None

    def size(self, keys: Iterable[str]) -> int:
        """The bytes that units take."""
        paths = (path for key in set(keys) if (self.units / key).is_dir() for path in (self.units / key).iterdir())
        return sum(path.stat().st_size for path in paths)


@dataclass(frozen=True)
class Lock:
    handle: BaseFileLock

    def release(self) -> None:
        self.handle.release(force=True)


@contextmanager
def locked(lock: Lock | None) -> Iterator[Lock | None]:
    try:
        yield lock
    finally:
        if lock is not None:
            lock.release()
