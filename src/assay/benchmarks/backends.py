"""What it costs to send a unit of one second to a worker: loky, dask and ray with two workers on this machine."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay import lab

STUDY = '''"""Units that wait."""

import time

from assay import lab


class Params(lab.Params):
    units: int = 2
    seconds: float = 1.0


study = lab.Study(
    "waiting",
    title="Waiting",
    question="What does sending a unit cost?",
    source="a benchmark",
    params=Params,
    presets={name: lab.Preset(seeds=3, cost="1 min") for name in ("smoke", "laptop", "paper")},
)


@study.arm("wait", over={"k": lambda params: range(params.units)})
def wait(params, seeds, record, *, k):
    """Waits, and records one number."""
    time.sleep(params.seconds)
    record(waited=params.seconds)
'''
PACKAGES = {"loky": "joblib", "dask": "distributed", "ray": "ray"}


@dataclass(frozen=True)
class Plan:
    units: int = 24
    seconds: float = 1.0
    workers: int = 2


PLAN = Plan()


def run(device: str, plan: Plan = PLAN) -> dict[str, Any]:
    """The time from one unit to the next on a worker, once all workers have answered, and its part beyond the waiting:
    planning, sending, hashing, storing. What starting takes is counted apart."""
    rows = []
    for backend, package in PACKAGES.items():
        if importlib.util.find_spec(package) is None:
            print(f"assay: {backend} is left out: {package} is not installed", file=sys.stderr)
            continue
        ends = _ends(backend, plan)
        each = (ends[-1] - ends[plan.workers - 1]) * plan.workers / (len(ends) - plan.workers)
        rows.append(
            {
                "backend": backend,
                "units": len(ends),
                "overhead / unit": round(each / plan.seconds - 1, 4),
                "start": f"{ends[0] - plan.seconds:.1f} s",
            }
        )
    return {"seconds of a unit": plan.seconds, "workers": plan.workers, "rows": rows}


def _ends(backend: str, plan: Plan) -> list[float]:
    """When each unit was stored, in seconds since the run began."""
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "studies" / "waiting"
        folder.mkdir(parents=True)
        (folder / "study.py").write_text(STUDY)
        started = time.perf_counter()

        def hear(event: lab.Event) -> None:
            if isinstance(event, lab.UnitDone):
                ends.append(time.perf_counter() - started)

        lab.run(
            "waiting",
            preset="smoke",
            set={"units": plan.units, "seconds": plan.seconds},
            jobs=plan.workers,
            backend=backend,
            runs=Path(place) / "runs",
            studies=folder.parent,
            on_event=hear,
        )
    return ends
