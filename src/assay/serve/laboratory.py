"""The lab's calls as the server makes them: always on its own folder of runs, and on names that are really there."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import Any

from assay import lab
from assay.lab import Comparison, Forecast, PhaseMap, Run, Study, UserError
from assay.lab.outline import Outline

from .models import Asked

FRESH = 10.0  # seconds for which the list of studies is good


class NotHere(Exception):
    """What was asked for is not among what there is."""


class Laboratory:
    def __init__(self, runs_folder: Path, studies: str | None = None) -> None:
        self.runs_folder = runs_folder
        self.studies = studies
        self._lock = threading.Lock()
        self._outlines: tuple[float, list[Outline]] | None = None

    def outlines(self) -> list[Outline]:
        """All studies. Looking takes the reading of every file, so that what was seen some seconds ago is told at once
        and looked at again meanwhile: an edit is seen by whoever asks next."""
        known = self._outlines
        if known is None:
            return self._look()
        if time.monotonic() - known[0] > FRESH and not self._lock.locked():
            threading.Thread(target=self._look_again, daemon=True).start()
        return known[1]

    def _look(self) -> list[Outline]:
        with self._lock:
            known = self._outlines
            if known is None or time.monotonic() - known[0] > FRESH:
                self._outlines = known = (time.monotonic(), lab.outlines(self.studies))
            return known[1]

    def _look_again(self) -> None:
        try:
            self._look()
        except UserError:
            self._outlines = None  # whoever asks next hears what is wrong

    def warm(self) -> None:
        """Load what the first questions would wait for."""
        with contextlib.suppress(UserError):  # whoever asks hears of it
            for outline in self.outlines()[:1]:
                self.study(outline.name)

    def study(self, name: str) -> Study:
        if not lab.has_study(name, studies=self.studies):
            raise NotHere(f"there is no study '{name}'")
        return lab.find_study(name, studies=self.studies)

    def plan(self, asked: Asked) -> Forecast:
        """What a run would do; whatever is wrong with what was asked is a sentence."""
        self.study(asked.study)
        try:
            return lab.plan(asked.study, runs=self.runs_folder, studies=self.studies, **asked.request())
        except (UserError, NotHere):
            raise
        except Exception as error:  # a grid or a constant that was not written for such values
            raise UserError(f"this cannot be planned: {type(error).__name__}: {error}") from error

    def runs(self) -> list[Run]:
        """All that are stored, newest first."""
        return lab.runs(runs=self.runs_folder, studies=self.studies)[::-1]

    def run(self, id: str) -> Run:
        """A run, or a cell of a sweep, by its whole id: no other word is looked for."""
        found = next((run for run in self.runs() if run.id == id), None)
        if found is not None:
            return found
        if not any(cell.run == id for each in self.maps() for cell in each.cells):
            raise NotHere(f"there is no run '{id}'")
        return lab.find_run(id, runs=self.runs_folder, studies=self.studies)

    def compare(self, a: str, b: str) -> Comparison:
        return lab.compare(self.run(a), self.run(b))

    def rename(self, id: str, name: str) -> Run:
        return lab.rename_run(self.run(id).id, name, runs=self.runs_folder)

    def mark_interrupted(self, id: str) -> None:
        lab.mark_interrupted(id, runs=self.runs_folder)

    def maps(self) -> list[PhaseMap]:
        return lab.maps(runs=self.runs_folder)

    def worker_request(self, **more: Any) -> dict[str, Any]:
        """What a worker process needs to know besides its work."""
        return {"runs": str(self.runs_folder), "studies": self.studies, **more}
