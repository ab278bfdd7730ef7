"""A job: one piece of work that somebody asked for, how far it is, and how it ended."""

from __future__ import annotations

import datetime
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["waiting", "running", "complete", "failed", "cancelled", "interrupted"]
OVER: tuple[State, ...] = ("complete", "failed", "cancelled", "interrupted")
_SENTENCES = 40
_METRICS = 8
_SERIES = 120


@dataclass
class Job:
    """``work`` is what a worker process is told. ``result`` is what it hands back, where that is no stored run."""

    id: str
    kind: Literal["run", "gemfilter"]
    title: str
    work: dict[str, Any]
    created: str
    state: State = "waiting"
    started: str = ""
    finished: str = ""
    run: str = ""
    message: str = ""
    total: int = 0
    done: int = 0
    reused: int = 0
    failures: int = 0
    pid: int | None = None
    verdicts: dict[str, int] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    flying: dict[str, float] = field(default_factory=dict)  # unit -> share of it that is done
    metrics: OrderedDict[tuple[str, str], list[float]] = field(default_factory=OrderedDict)
    result: dict[str, Any] | None = None

    @classmethod
    def asked(cls, kind: Literal["run", "gemfilter"], title: str, work: dict[str, Any]) -> Job:
        return cls(f"job-{secrets.token_hex(6)}", kind, title, work, now())

    @property
    def over(self) -> bool:
        return self.state in OVER

    def begin(self, pid: int) -> None:
        self.state, self.started, self.pid = "running", now(), pid

    def end(self, state: State, message: str = "") -> None:
        self.state, self.finished, self.pid = state, now(), None
        self.message = message or self.message
        self.flying.clear()

    def hear(self, told: Mapping[str, Any]) -> None:
        """Take in what a worker tells."""
        match told.get("event"):
            case "started":
                self.run, self.total = told["run"], told["total"]
            case "measured":
                self._measure(told["unit"], told["metric"], told["value"])
            case "advanced":
                self.flying[told["unit"]] = told["done"] / max(told["total"], 1e-9)
            case "unit":
                self.done += 1
                self.reused += told["reused"]
                self.failures += bool(told["error"])
                self.flying.pop(told["unit"], None)
            case "said":
                self.said = [*self.said, told["sentence"]][-_SENTENCES:]

    def _measure(self, unit: str, metric: str, value: float) -> None:
        series = self.metrics.setdefault((unit, metric), [])
        self.metrics.move_to_end((unit, metric))
        series.append(value)
        if len(series) > _SERIES:
            del series[1:-1:2]  # every second one: the shape stays
        while len(self.metrics) > _METRICS:
            self.metrics.popitem(last=False)

    def document(self) -> dict[str, Any]:
        """As pages see it."""
        share = (self.done + sum(self.flying.values())) / self.total if self.total else 0.0
        keys = ("id", "kind", "title", "state", "created", "started", "finished", "run", "message", "total", "done")
        more = ("reused", "failures", "pid", "verdicts", "said")
        return {
            **{key: getattr(self, key) for key in (*keys, *more)},
            "share": 1.0 if self.state == "complete" else min(1.0, share),
            "study": self.work.get("study", ""),
            "request": self.work.get("request", {}),
            "metrics": [
                {"unit": unit, "metric": metric, "series": series} for (unit, metric), series in self.metrics.items()
            ],
            "has_result": self.result is not None,
        }

    def record(self) -> dict[str, Any]:
        """As the journal keeps it: what is asked for, and how it ended."""
        keys = ("id", "kind", "title", "work", "created", "state", "started", "finished", "run", "message", "total")
        return {key: getattr(self, key) for key in (*keys, "done", "reused", "failures", "verdicts", "said")}


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
