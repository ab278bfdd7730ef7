"""GemFilter on a text of one's own, where there is a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter

from assay.lab import UserError

from .. import indexes, reading
from ..jobs import Job
from ..laboratory import Laboratory, NotHere
from ..models import Question
from ..queue import Queue


def router(laboratory: Laboratory, queue: Queue, model: str, folder: Path | None = None) -> APIRouter:
    made = APIRouter(prefix="/api/gemfilter", tags=["gemfilter"])

    @made.get("")
    def available() -> dict[str, Any]:
        """Whether there is a model, and why not; the indexes that may be asked about."""
        known = [each.to_dict() for each in indexes.listed(folder).values()]
        return {"model": model, "missing": reading.missing(model), "indexes": known}

    @made.post("", status_code=202)
    def ask(asked: Question) -> dict[str, Any]:
        """Put a question into the queue."""
        if reason := reading.missing(model):
            raise UserError(f"the page cannot be used: {reason}")
        given = asked.model_dump(exclude={"index"})
        if asked.index:
            given |= _chosen(asked, folder)
        elif not asked.text.strip():
            raise UserError("the text is empty: there is nothing to read")
        kind = "index" if asked.index else "gemfilter"
        work = laboratory.worker_request(kind=kind, model=model, question=given)
        return queue.add(Job.asked("gemfilter", asked.question or "What was kept of a text", work))

    return made


def _chosen(asked: Question, folder: Path | None) -> dict[str, Any]:
    """What the worker needs of a listed index. The name is looked up and never made into a path."""
    found = indexes.listed(folder).get(asked.index)
    if found is None:
        raise NotHere(f"there is no index '{asked.index}'")
    if asked.text.strip():
        raise UserError("either a text or an index is asked about, not both")
    if not asked.question.strip():
        raise UserError("the question is empty")
    return {"folder": str(found.folder), "files": list(found.files), "layer": found.layer, "dtype": found.dtype}
