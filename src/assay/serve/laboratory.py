"""The lab's calls as the server makes them: always on its own folder of runs, and on names that are really there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import lab
from assay.lab import Comparison, Forecast, PhaseMap, Run, Study, UserError
from assay.lab.outline import Outline

from .models import Asked


class NotHere(Exception):
    """What was asked for is not among what there is."""


@dataclass(frozen=True)
class Laboratory:
    runs_folder: Path
    studies: str | None = None

    def outlines(self) -> list[Outline]:
        return lab.outlines(self.studies)

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
