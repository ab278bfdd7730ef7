"""Runs that are asked for: started, watched, cancelled, taken up again."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException
from starlette.responses import StreamingResponse

from ..jobs import Job
from ..laboratory import Laboratory, NotHere
from ..live import Hub
from ..models import Start
from ..queue import Queue


def router(laboratory: Laboratory, queue: Queue, hub: Hub) -> APIRouter:
    made = APIRouter(prefix="/api", tags=["jobs"])

    def found(id: str) -> Job:
        job = queue.find(id)
        if job is None:
            raise NotHere(f"there is no job '{id}'")
        return job

    @made.get("/jobs")
    def jobs() -> list[dict[str, Any]]:
        """All jobs, newest first."""
        return queue.jobs()

    @made.post("/jobs", status_code=202)
    def start(asked: Start) -> dict[str, Any]:
        """Put a run into the queue. It is planned first, so that what cannot be is refused at once."""
        forecast = laboratory.plan(asked)
        request = {**asked.request(), "name": asked.name}
        work = laboratory.worker_request(kind="run", study=asked.study, request=request)
        return queue.add(Job.asked("run", forecast.plan.study.title, work))

    @made.get("/jobs/{id}")
    def job(id: str) -> dict[str, Any]:
        return found(id).document()

    @made.get("/jobs/{id}/result")
    def result(id: str) -> dict[str, Any]:
        """What a job handed back, where that is no stored run."""
        kept = found(id).result
        if kept is None:
            raise NotHere(f"job '{id}' has no result")
        return kept

    @made.post("/jobs/{id}/cancel")
    def cancel(id: str) -> dict[str, Any]:
        queue.cancel(found(id))
        return found(id).document()

    @made.post("/jobs/{id}/resume", status_code=202)
    def resume(id: str) -> dict[str, Any]:
        """Ask for the same once more: what is stored is reused, so it goes on where it was."""
        before = found(id)
        if not before.over:
            raise HTTPException(409, "it has not ended yet")
        # The run that was broken off keeps the name that it was given.
        work = {**before.work, "request": {**before.work.get("request", {}), "name": ""}}
        return queue.add(Job.asked(before.kind, before.title, work if before.kind == "run" else before.work))

    @made.delete("/jobs/{id}")
    def forget(id: str) -> dict[str, Any]:
        """Take a job that is over off the list; its stored run stays."""
        if not queue.forget(found(id)):
            raise HTTPException(409, "it has not ended yet; cancel it first")
        return {"forgotten": id}

    @made.get("/events", include_in_schema=False)
    async def events() -> StreamingResponse:
        """All jobs, and from then on each one that changes, as server-sent events."""
        return StreamingResponse(hub.stream(queue.jobs()), media_type="text/event-stream")

    return made
