"""Reports of stored runs, written by a process of their own when somebody first asks, kept while nothing changes."""

from __future__ import annotations

import mimetypes
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from assay.lab import Run, Study, UserError

from .laboratory import Laboratory
from .process import Process

KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".parquet": "application/octet-stream"}


@dataclass(frozen=True)
class _Written:
    study: Study  # as it was; one whose files changed since is another object
    status: str
    files: dict[str, Path]


class Reports:
    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        self._folder = tempfile.TemporaryDirectory(prefix="assay-reports-", ignore_cleanup_errors=True)
        self._written: dict[str, _Written] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        self._folder.cleanup()

    def write(self, run: Run) -> str:
        """The name of the report's page; it is written first where there is none, or an old one."""
        with self._lock:  # one at a time
            known = self._written.get(run.id)
            study = run.study
            if known is None or known.study is not study or known.status != run.manifest.status:
                self._written[run.id] = _Written(study, run.manifest.status, self._files(run))
        return f"{study.name}.html"

    def _files(self, run: Run) -> dict[str, Path]:
        folder = Path(self._folder.name) / run.id
        work = self._laboratory.worker_request(kind="report", run=run.id, out=str(folder))
        ending = Process(work).follow(lambda told: None)
        if ending.answer is None or ending.answer["status"] != "complete":
            why = ending.answer.get("message", "") if ending.answer else ending.crash
            raise UserError(f"the report could not be written: {why}")
        return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}

    def file(self, run: str, name: str) -> tuple[Path, str] | None:
        """A file of a report that was written, and its kind. The name is looked up and never made into a path."""
        found = self._written[run].files.get(name) if run in self._written else None
        if found is None:
            return None
        kind = KINDS.get(found.suffix) or mimetypes.guess_type(found.name)[0] or "application/octet-stream"
        return found, kind
