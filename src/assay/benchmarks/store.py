"""The store: small units and a unit of a million rows, against plain files of the same bytes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from assay.lab.files import write_through
from assay.lab.store import Payload, Store


@dataclass(frozen=True)
class Plan:
    """How many small units, the rows of each, the rows of the large one, and how often all of it."""

    units: int = 200
    rows: int = 150
    million: int = 1_000_000
    repeats: int = 5


PLAN = Plan()


def run(device: str, plan: Plan = PLAN) -> dict[str, Any]:
    """Writing goes through to the disk on both sides; reading checks checksums on ours, and only reads on the other."""
    small = [_payload(plan.rows, number) for number in range(plan.units)]
    large = [_payload(plan.million, 0)]
    rows = [
        _row("small units", small, plan.repeats),
        _row("one unit of many rows", large, plan.repeats),
    ]
    return {"rows": rows}


def _payload(rows: int, number: int) -> Payload:
    draw = np.random.default_rng(number)
    frame = pl.DataFrame(
        {
            "seed": np.arange(rows) % 8,
            "step": np.arange(rows) // 8,
            "metric": ["loss"] * rows,
            "value": draw.standard_normal(rows),
            "arm": ["network"] * rows,
        }
    )
    return Payload.pack(frame, {}, {"study": "bench", "notes": {}, "seeds": list(range(8)), "seconds": 0.0})


def _row(name: str, payloads: list[Payload], repeats: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {"write": [], "plain write": [], "read": [], "plain read": []}
    rows = 0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as place:
            store, plain = Store(Path(place), "bench"), Path(place) / "plain"
            store.prepare()
            plain.mkdir()
            keys = [f"{number:024x}.0-7" for number in range(len(payloads))]
            times["write"].append(_timed(partial(_write, store, keys, payloads)))
            times["plain write"].append(_timed(partial(_plain_write, plain, payloads)))
            fresh = Store(Path(place), "bench")  # which has checked nothing yet
            times["read"].append(_timed(partial(_read, fresh, keys)))
            times["plain read"].append(_timed(partial(_plain_read, plain)))
            rows = sum(len(fresh.read(key).frame) for key in keys)
    middle = {side: statistics.median(seconds) for side, seconds in times.items()}
    return {
        "what": name,
        "units": len(payloads),
        "rows": rows,
        "units written per second": round(len(payloads) / middle["write"], 1),
        "write / plain files": round(_ratio(times["write"], times["plain write"]), 2),
        "rows read per second": round(rows / middle["read"]),
        "read and check / plain files": round(_ratio(times["read"], times["plain read"]), 2),
    }


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _write(store: Store, keys: list[str], payloads: list[Payload]) -> None:
    for key, payload in zip(keys, payloads, strict=True):
        store.write(key, payload)


def _plain_write(folder: Path, payloads: list[Payload]) -> None:
    for number, payload in enumerate(payloads):
        for name, content in payload.files.items():
            write_through(folder / f"{number}.{name}", content)


def _read(store: Store, keys: list[str]) -> None:
    for key in keys:
        store.read(key)


def _plain_read(folder: Path) -> None:
    for path in folder.iterdir():
        path.read_bytes()
