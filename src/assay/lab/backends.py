"""The processes that compute units: their threads, their memory, their end, their devices."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from .errors import UserError
from .interrupts import interrupts_wait

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for all that computes inside the block; afterwards the caller has as many as before. Several runs may
    be at work in one process: the first sets the limit, and the last takes it away."""
    import torch

    _Limit.enter()
    try:
        torch.set_num_threads(1)  # torch counts for each thread that calls it
        yield
    finally:
        _Limit.leave()


class _Limit:
    """The one limit of this process, and how many are inside it."""

    lock = threading.Lock()
    inside = 0
    threads = 1
    pools: Any = None

    @classmethod
    def enter(cls) -> None:
        import threadpoolctl
        import torch

        with cls.lock:
            if cls.inside == 0:
                cls.threads = torch.get_num_threads()
                cls.pools = threadpoolctl.threadpool_limits(1)
            cls.inside += 1

    @classmethod
    def leave(cls) -> None:
        import torch

        with cls.lock:
            cls.inside -= 1
            torch.set_num_threads(cls.threads)
            if cls.inside == 0:
                cls.pools.restore_original_limits()


def prepare_worker() -> None:
    """Make a process that only computes units fit for it: one thread, and an allocator that keeps freed memory.
    Idempotent, called before a unit's first tensor; never called in the process of somebody who asked for a run."""
    import threadpoolctl
    import torch

    keep_freed_memory()
    _stay_when_large()
    threadpoolctl.threadpool_limits(1)
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def keep_freed_memory() -> None:
    """Raise glibc's thresholds for returning memory, for good; does nothing with another C library.

    Training allocates and frees the same multi-megabyte tensors at every step. With glibc's defaults they go back
    to the kernel and are faulted in again, which made some sweeps ten times slower.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, 32 * 2**20)
    mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    mallopt(_M_TOP_PAD, 256 * 2**20)


def _stay_when_large() -> None:
    """Where psutil is installed, joblib's workers take 300 MB more than at their start for a leak, stop with a warning
    and begin again with all imports. Freed memory that is kept, and a model that units share, are no leak."""
    worker = sys.modules.get("joblib.externals.loky.process_executor")
    if hasattr(worker, "_MAX_MEMORY_LEAK_SIZE"):
        worker._MAX_MEMORY_LEAK_SIZE = sys.maxsize  # type: ignore[union-attr]


def stop_workers() -> None:
    """Take down the processes that joblib keeps for units, at once."""
    with contextlib.suppress(Exception):
        from joblib.externals.loky import get_reusable_executor

        with interrupts_wait():
            # Asked for anew, it would end the old one under a lock that a result on its way back may be waiting for.
            get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


def default_jobs() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pick_device(wanted: str) -> str:
    """``cpu`` or ``cuda``, which must be there; ``auto`` takes a GPU when there is one."""
    device = name_device(wanted)
    check_device(device)
    return device


def name_device(wanted: str) -> str:
    """What ``wanted`` stands for, whether or not it is there: what is stored already needs no device."""
    if wanted not in ("cpu", "cuda", "auto"):
        raise UserError(f"unknown device '{wanted}' (allowed: cpu, cuda, auto)")
    if wanted == "auto":
        return "cuda" if has_device("cuda") else "cpu"
    return wanted


def has_device(device: str) -> bool:
    import torch

    return device == "cpu" or torch.cuda.is_available()


def check_device(device: str) -> None:
    if not has_device(device):
        raise UserError(f"--device {device} was asked for, and this machine has no GPU that torch can use")
