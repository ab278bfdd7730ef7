"""A worker process from the server's side: told its work in a line of JSON, it answers in such lines."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GRACE = 8.0  # seconds in which a run that is cancelled may put things in order


@dataclass(frozen=True)
class Ending:
    """How a worker ended: with its last word, or without one."""

    answer: dict[str, Any] | None
    crash: str = ""

    @property
    def complete(self) -> bool:
        return (self.answer or {}).get("status") == "complete"


class Process:
    """One worker. It leads a group of its own, so that it ends with everything that it started."""

    def __init__(self, work: dict[str, Any]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it is read when the worker has ended)
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "assay.serve.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        assert self._popen.stdin is not None
        # Its input stays open: when this process ends, however it ends, the worker sees the end of it and stops too.
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.write(json.dumps(work) + "\n")
            self._popen.stdin.flush()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def follow(self, hear: Callable[[dict[str, Any]], None]) -> Ending:
        """Pass on all that it tells until it ends."""
        answer: dict[str, Any] | None = None
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                continue
            if told.get("event") == "answer":
                answer = told
            else:
                hear(told)
        status = self._popen.wait()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        self._end_group()
        self._close()
        with self._errors:
            return Ending(answer) if answer is not None else Ending(None, self._why(status))

    def stop(self) -> None:
        """Interrupt it; what does not end by itself in a while is killed."""
        with self._lock:
            if self._timer is not None or self._popen.returncode is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)
            self._timer = threading.Timer(GRACE, self._end_group)
            self._timer.daemon = True
            self._timer.start()

    def _end_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _close(self) -> None:
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _why(self, status: int) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        if status < 0:
            name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
            hint = " Was there enough memory?" if name == "SIGKILL" else ""
            return f"The worker process was killed ({name}).{hint} What was computed until then is stored."
        last = f": {lines[-1]}" if lines else ""
        return f"The worker process ended with status {status}{last}"
