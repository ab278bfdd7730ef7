"""One job at a time, each in a process of its own; the others wait in order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from assay.lab import UserError

from .jobs import Job
from .journal import Journal
from .process import Ending, Process

MOST_WAITING = 50
MOST_KEPT = {"run": 100, "gemfilter": 10}


class Full(Exception):
    """Too much waits already."""


class Queue:
    """``tell`` hears of every change of a job, ``orphaned`` of a run whose process died without a word."""

    def __init__(
        self,
        journal: Journal,
        tell: Callable[[dict[str, Any]], None],
        orphaned: Callable[[str], None] = lambda run: None,
    ) -> None:
        self._journal = journal
        self._tell = tell
        self._orphaned = orphaned
        self._changed = threading.Condition()
        self._jobs = {job.id: job for job in journal.read()}
        self._process: Process | None = None
        self._current: Job | None = None
        self._cancelled: set[str] = set()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="assay-queue", daemon=True)

    def start(self) -> None:
        for job in self._jobs.values():
            if job.state == "interrupted" and job.run:
                self._orphaned(job.run)
        self._journal.write(self._jobs.values())
        self._thread.start()

    def stop(self) -> None:
        """End the job at work; it and those that wait are interrupted and can be taken up again."""
        with self._changed:
            self._closing = True
            if self._process is not None:
                self._process.stop()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=20)
        for job in self._jobs.values():
            if not job.over:
                job.end("interrupted", "The server was stopped before it began.")
        self._journal.write(self._jobs.values())

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, newest first."""
        with self._changed:
            return [job.document() for job in reversed(self._jobs.values())]

    def find(self, id: str) -> Job | None:
        return self._jobs.get(id)

    def add(self, job: Job) -> dict[str, Any]:
        with self._changed:
            if sum(each.state == "waiting" for each in self._jobs.values()) >= MOST_WAITING:
                raise Full(f"{MOST_WAITING} jobs wait already; cancel some, or wait with them")
            self._jobs[job.id] = job
            self._forget_old()
            self._changed.notify_all()
            document = job.document()
        self._note(job)
        return document

    def cancel(self, job: Job) -> None:
        with self._changed:
            if job.state == "waiting":
                job.end("cancelled", "It was cancelled before it began.")
            elif job.state == "running":
                self._cancelled.add(job.id)
                if self._process is not None and self._current is job:
                    self._process.stop()
        self._note(job)

    def forget(self, job: Job) -> bool:
        """Take a job that is over off the list; its stored run stays."""
        with self._changed:
            if not job.over:
                return False
            del self._jobs[job.id]
        self._journal.write(self._jobs.values())
        return True

    def _forget_old(self) -> None:
        """Keep the newest jobs of each kind that are over; what they computed is stored, an answer is gone."""
        for kind, most in MOST_KEPT.items():
            over = [job for job in self._jobs.values() if job.kind == kind and job.over]
            for job in over[:-most]:
                del self._jobs[job.id]

    def _work(self) -> None:
        while (job := self._next()) is not None:
            ending = self._carry_out(job)
            run = (ending.answer or {}).get("run", job.run)
            if run and not ending.complete:
                self._orphaned(run)  # before anybody sees that the job is over, and takes it up again
            with self._changed:
                self._process = self._current = None
                cancelled = job.id in self._cancelled
                self._conclude(job, ending, cancelled=cancelled, closing=self._closing)
            self._note(job)

    def _next(self) -> Job | None:
        """The job that begins now, with its process; None when the queue closes."""
        with self._changed:
            while True:
                if self._closing:
                    return None
                job = next((each for each in self._jobs.values() if each.state == "waiting"), None)
                if job is None:
                    self._changed.wait()
                    continue
                try:
                    self._process, self._current = Process(job.work), job
                except OSError as error:
                    job.end("failed", f"No worker process could be started: {error.strerror or error}")
                    continue
                job.begin(self._process.pid)
                return job

    def _carry_out(self, job: Job) -> Ending:
        self._note(job)
        process = self._process
        assert process is not None

        def hear(told: dict[str, Any]) -> None:
            with self._changed:
                job.hear(told)
                document = job.document()
            self._tell(document)

        return process.follow(hear)

    @staticmethod
    def _conclude(job: Job, ending: Ending, *, cancelled: bool, closing: bool) -> None:
        answer = ending.answer or {}
        job.verdicts, job.result = answer.get("verdicts", {}), answer.get("result")
        job.run = answer.get("run", job.run)
        if ending.complete:
            job.end("complete")
        elif cancelled:
            job.end("cancelled", "It was cancelled. What was computed until then is stored.")
        elif closing:
            job.end("interrupted", "The server was stopped meanwhile. What was computed is stored.")
        else:
            job.end("failed", answer.get("message") or ending.crash)

    def _note(self, job: Job) -> None:
        """Write the list down and tell of the job."""
        with self._changed:
            document = job.document()
            with contextlib.suppress(UserError):  # a full disk costs the memory of a restart, and no work
                self._journal.write(self._jobs.values())
        self._tell(document)
