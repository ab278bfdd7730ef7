"""Seconds and peak memory of a piece of work, on whatever device it runs, and the bytes of a cache."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

Made = TypeVar("Made")
_PROCESS = Path("/proc/self")


@dataclass(frozen=True)
class Timed(Generic[Made]):
    """What a piece of work returned, and what it took. Without a way to measure memory the peak is None."""

    made: Made
    seconds: float
    peak_bytes: int | None


def timed(work: Callable[[], Made], device: torch.device | str) -> Timed[Made]:
    """Run a piece of work between two clock readings, waiting for the device before each."""
    reset_peak(device)
    started = now(device)
    made = work()
    seconds = now(device) - started
    return Timed(made, seconds, peak_bytes(device))


def now(device: torch.device | str) -> float:
    """The clock, when all that was asked of the device is done."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def reset_peak(device: torch.device | str) -> None:
    """Let the peak begin again from what is held now, where that can be done."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    else:
        _reset_process_peak()


def peak_bytes(device: torch.device | str) -> int | None:
    """The most that was held since the reset: tensors on a GPU; on the CPU the whole process, with its libraries."""
    if torch.device(device).type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    try:
        lines = (_PROCESS / "status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return _peak_since_start()


def peak_counts(device: torch.device | str) -> str:
    """What ``peak_bytes`` counts on a device, for a person to read."""
    if torch.device(device).type == "cuda":
        return "tensors on the GPU"
    if _reset_process_peak():
        return "the whole process"
    return "the whole process since it started" if _peak_since_start() is not None else "not measured here"


def stored_bytes(cache: Any) -> int:
    """Bytes of the keys and values that a cache holds."""
    tensors = [part for layer in cache.layers for part in (layer.keys, layer.values) if part is not None]
    return sum(part.numel() * part.element_size() for part in tensors)


def _reset_process_peak() -> bool:
    """Linux lets a process forget the peak of its resident memory; elsewhere it counts from the start."""
    try:
        (_PROCESS / "clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _peak_since_start() -> int | None:
    try:
        import resource
    except ImportError:  # Windows has no such module
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
