"""What each study's preset `laptop` costs, and all of them together; also against a fixed piece of work of the same
machine (small matrix products, elementwise steps), measured before every study."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import Any

import torch

from assay import lab
from assay.lab import discovery


def run(device: str, preset: str = "laptop", studies: Iterable[str] | None = None) -> dict[str, Any]:
    """Whole runs with as many jobs as there are cores, one study after another, each into an empty folder. What is
    left out for want of data or of a model is named as it comes and costs nothing here."""
    rows: list[dict[str, Any]] = []
    yards = []
    for name in studies or sorted(discovery.studies()):
        print(f"assay: {name}", file=sys.stderr)
        yards.append(yardstick())
        with tempfile.TemporaryDirectory() as place:
            started = time.perf_counter()
            done = lab.run(name, preset, device=device, runs=place, on_event=_hear)
            judged = len(done.claims)  # belongs to a run
            seconds = time.perf_counter() - started
            spent = sum(float(note["seconds"]) for note in done.results.notes())
        units = done.manifest.computed
        rows.append({"study": name, "units": units, "claims": judged, "seconds": seconds, "core-seconds": spent})
    yard = statistics.median(yards)
    rows.append({"study": "all", **{key: sum(row[key] for row in rows) for key in list(rows[0])[1:]}})
    return {"rows": [_shown(row, rows[-1], yard) for row in rows], "yardstick_seconds": round(yard, 3)}


def _hear(event: lab.Event) -> None:
    """Arms that are left out, and why, are part of what was measured."""
    if isinstance(event, lab.Said):
        print(f"assay: {event.sentence}", file=sys.stderr)


def yardstick(steps: int = 20_000) -> float:
    """Seconds of one core for work of the kind that small networks make."""
    weights, inputs = torch.eye(64) * 0.9, torch.ones(32, 64)
    started = time.perf_counter()
    for _ in range(steps):
        inputs = torch.relu(inputs @ weights) + 0.1
    return time.perf_counter() - started


def _shown(row: dict[str, Any], total: dict[str, Any], yard: float) -> dict[str, Any]:
    return {
        "study": row["study"],
        "units": row["units"],
        "claims": row["claims"],
        "minutes": round(row["seconds"] / 60, 2),
        "share of all": round(row["seconds"] / total["seconds"], 3),
        "core-seconds": round(row["core-seconds"], 1),
        "/ fixed work": round(row["core-seconds"] / yard, 1),
    }
