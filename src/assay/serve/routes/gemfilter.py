"""GemFilter on a text of one's own, where there is a language model."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from assay.lab import UserError

from .. import reading
from ..jobs import Job
from ..laboratory import Laboratory
from ..models import Question
from ..queue import Queue


def router(laboratory: Laboratory, queue: Queue, model: str) -> APIRouter:
    made = APIRouter(prefix="/api/gemfilter", tags=["gemfilter"])

    @made.get("")
    def available() -> dict[str, Any]:
        """Whether there is a model, and why not."""
        return {"model": model, "missing": reading.missing(model)}

    @made.post("", status_code=202)
    def ask(asked: Question) -> dict[str, Any]:
        """Put a question into the queue."""
        if reason := reading.missing(model):
            raise UserError(f"the page cannot be used: {reason}")
        if not asked.text.strip():
            raise UserError("the text is empty: there is nothing to read")
        work = laboratory.worker_request(kind="gemfilter", model=model, question=asked.model_dump())
        return queue.add(Job.asked("gemfilter", asked.question or "What was kept of a text", work))

    return made
