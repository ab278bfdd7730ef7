"""The process that does one job: it reads what to do from standard input and tells how it goes on standard output."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from assay.lab.interrupts import raise_terminated

EVERY = 0.1  # seconds between two words about the same metric or unit
Tell = Callable[[dict[str, Any]], None]


class Listener:
    """The lab's events as lines. Numbers that come faster than anybody looks are left out."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told: dict[tuple[str, str], float] = {}

    def __call__(self, event: Any) -> None:
        from assay.lab import Advanced, Measured, Said, Started, UnitDone

        match event:
            case Started(total=total, stored=stored, run=run):
                self._tell({"event": "started", "total": total, "stored": stored, "run": run})
            case Measured(unit=unit, metric=metric, value=value):
                if value == value and abs(value) != float("inf") and self._due(unit, metric):
                    self._tell({"event": "measured", "unit": unit, "metric": metric, "value": float(f"{value:.6g}")})
            case Advanced(unit=unit, done=done, total=total):
                if self._due(unit, ""):
                    self._tell({"event": "advanced", "unit": unit, "done": done, "total": total})
            case UnitDone(unit=unit, reused=reused, error=error):
                self._told = {key: when for key, when in self._told.items() if key[0] != unit.label}
                self._tell({"event": "unit", "unit": unit.label, "reused": reused, "error": error})
            case Said(sentence=sentence):
                self._tell({"event": "said", "sentence": sentence})

    def _due(self, unit: str, metric: str) -> bool:
        now = time.monotonic()
        if now - self._told.get((unit, metric), 0.0) < EVERY:
            return False
        self._told[unit, metric] = now
        return True


def run(work: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Run a study and judge it."""
    from assay import lab
    from assay.lab.backends import keep_freed_memory

    keep_freed_memory()  # this process is the run's own
    where = {"runs": work["runs"], "studies": work["studies"]}
    done = lab.run(work["study"], on_event=Listener(tell), **work["request"], **where)
    manifest = done.manifest
    told = {"run": done.id, "status": manifest.status, "verdicts": done.claims.counts}
    if manifest.failures:
        first = manifest.failures[0]
        told["message"] = f"{len(manifest.failures)} units failed; the first is {first.unit}: {first.error}"
    return told


def report(work: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Write the report of a stored run."""
    from assay import lab
    from assay.report.site import BrokenExhibit

    found = lab.find_run(work["run"], runs=work["runs"], studies=work["studies"])
    try:
        lab.report(found, out=Path(work["out"]), studies=work["studies"])
    except BrokenExhibit as error:
        return {"status": "complete", "message": str(error)}  # the rest of it is written
    return {"status": "complete"}


def gemfilter(work: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Answer a question about a text, and say what was kept of it."""
    from .reading import read

    result = read(work["model"], work["question"], lambda sentence: tell({"event": "said", "sentence": sentence}))
    return {"status": "complete", "result": result}


def index(work: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Answer a question from the documents of an index."""
    from .indexes import read

    result = read(work["model"], work["question"], lambda sentence: tell({"event": "said", "sentence": sentence}))
    return {"status": "complete", "result": result}


WORK = {"run": run, "report": report, "gemfilter": gemfilter, "index": index}


def main() -> None:
    # What a shell starts in its background ignores interrupts, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, raise_terminated)  # a service manager asks every process of the server to end
    tell, source = _channel(), sys.stdin
    work = json.loads(source.readline())
    threading.Thread(target=_end_with, args=(source,), daemon=True).start()
    try:
        answer = WORK[work["kind"]](work, tell)
    except KeyboardInterrupt:
        answer = {"status": "interrupted"}
    except Exception as error:
        answer = {"status": "failed", "message": _sentence(error)}
    tell({"event": "answer", **answer})


def _channel() -> Tell:
    """Lines on what was standard output; whatever a study prints goes to standard error instead."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def tell(document: dict[str, Any]) -> None:
        with lock:
            stream.write(json.dumps(document, ensure_ascii=False) + "\n")
            stream.flush()

    return tell


def _end_with(source: TextIO) -> None:
    """Stop when the server that holds the other end of the input is gone."""
    while source.read(4096):
        pass
    os.kill(os.getpid(), signal.SIGINT)


def _sentence(error: Exception) -> str:
    from assay.lab import UserError
    from assay.lab.errors import position_of

    words = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, (UserError, ImportError, ValueError)):
        return words
    return f"{type(error).__name__}: {words}{position_of(error)}"


if __name__ == "__main__":
    main()
