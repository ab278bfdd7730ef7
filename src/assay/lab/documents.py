"""What the store writes down about runs: manifests, verdicts and maps, each sealed with its own checksum."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from .errors import UserError, unknown
from .files import json_bytes, one_sentence, sealed, unsealed, write_through
from .manifest import Manifest


class Documents:
    """The documents of one study's runs under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.units = root / "units"
        self.manifests = root / "manifests"
        self.cells = root / "cells"  # manifests of runs that are cells of a sweep
        self.maps = root / "maps"
        self.verdicts = root / "verdicts"

    def write_manifest(self, manifest: Manifest) -> None:
        self._write_sealed(self._place(manifest), manifest.document())

    def _place(self, manifest: Manifest) -> Path:
        return (self.manifests if manifest.kind == "run" else self.cells) / f"{manifest.id}.json"

    def _write_sealed(self, path: Path, document: dict[str, Any]) -> None:
        temporary = path.with_name(f".tmp-{path.name}-{os.getpid()}")
        with one_sentence("write", path):
            write_through(temporary, sealed(json.loads(json_bytes(document))))
            temporary.replace(path)

    def manifest_ids(self, *, cells: bool = False) -> list[str]:
        """All runs, or all cells of sweeps, oldest first."""
        folder = self.cells if cells else self.manifests
        # Not by glob(), to which a folder that may not be read is an empty one.
        with one_sentence("read", folder):
            try:
                names = os.listdir(folder)
            except (FileNotFoundError, NotADirectoryError):
                names = []
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and name[0] != ".")

    def manifest(self, run: str) -> Manifest:
        """A run's manifest, by its id or its name."""
        path = self.manifests / f"{run}.json"
        with one_sentence("read", path):
            if not path.exists() and not (path := self.cells / path.name).exists():
                return self._named(run)
        with one_sentence("read", self.units):  # else every unit of the run would be a surprise of its own
            if self.units.exists() and not os.access(self.units, os.R_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        document = unsealed(path)
        if document is None:
            raise UserError(f"the manifest {path} is damaged; remove it and run the study again")
        return Manifest.read(document, str(path))

    def _named(self, name: str) -> Manifest:
        found = [manifest for manifest in self.readable_manifests() if manifest.name == name]
        if not found:
            raise unknown("run", name, self.manifest_ids())
        return found[-1]

    def readable_manifests(self, *, cells: bool = False) -> list[Manifest]:
        """All runs (or cells of sweeps) that can be read, oldest first: a damaged manifest stands in the way of its own
        run alone."""
        found = []
        for run in self.manifest_ids(cells=cells):
            try:
                found.append(self.manifest(run))
            except UserError:
                continue
        return found

    def write_map(self, name: str, document: dict[str, Any]) -> None:
        with one_sentence("write to", self.maps):
            self.maps.mkdir(parents=True, exist_ok=True)
        self._write_sealed(self.maps / f"{name}.json", document)

    def read_maps(self) -> list[dict[str, Any]]:
        """The maps of sweeps, by name; one that is damaged is left out."""
        found = (unsealed(path) for path in sorted(self.maps.glob("[!.]*.json")))
        return [document for document in found if document is not None]

    def write_verdicts(self, run: str, document: dict[str, Any]) -> None:
        with one_sentence("write to", self.verdicts):
            self.verdicts.mkdir(parents=True, exist_ok=True)
        self._write_sealed(self.verdicts / f"{run}.json", document)

    def read_verdicts(self, run: str) -> dict[str, Any] | None:
        """What was written of a run's verdicts; None when that is nothing, or damaged."""
        return unsealed(self.verdicts / f"{run}.json")
