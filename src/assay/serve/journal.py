"""The jobs of a server on disk, so that a restart knows which of them it broke off."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from assay.lab import UserError

from .jobs import Job

_MOST = 100  # jobs that are remembered
_KNOWN = {field.name for field in fields(Job)}


@dataclass(frozen=True)
class Journal:
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "jobs.json"

    def read(self) -> list[Job]:
        """The jobs of the server that was here before; those it did not finish are interrupted."""
        try:
            kept: list[dict[str, Any]] = json.loads(self.path.read_text(encoding="utf-8"))
            jobs = [Job(**{name: each[name] for name in each if name in _KNOWN}) for each in kept]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError):
            return []  # a list of what was asked for, which no result depends on
        for job in jobs:
            if not job.over:
                job.end("interrupted", "The server was stopped meanwhile. What was computed is stored.")
        return jobs

    def write(self, jobs: Iterable[Job]) -> None:
        temporary = self.path.with_name(f".tmp-{self.path.name}-{os.getpid()}")
        records = [job.record() for job in jobs if job.kind == "run"][-_MOST:]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(records, indent=1, ensure_ascii=False), encoding="utf-8")
            temporary.replace(self.path)
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror or error}") from None
