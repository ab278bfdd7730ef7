"""Where units run: in this process, on joblib's loky workers, or on a ray or dask cluster through joblib."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator

from .errors import UserError

BACKENDS = ("loky", "ray", "dask")
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3


def prepare_process() -> None:
    """One thread, and an allocator that keeps freed memory; idempotent, called before a unit's first tensor.

    Training allocates and frees the same multi-megabyte tensors at every step. With glibc's defaults they go back
    to the kernel and are faulted in again, which made some sweeps ten times slower.
    """
    import threadpoolctl
    import torch

    keep_freed_memory()
    _stay_when_large()
    threadpoolctl.threadpool_limits(1)
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def keep_freed_memory() -> None:
    """Raise glibc's thresholds for returning memory; does nothing with another C library."""
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


def check_backend(backend: str) -> None:
    """Refuse an unknown backend, or one whose package is missing, before anything is written."""
    if backend not in BACKENDS:
        raise UserError(f"unknown backend '{backend}' (allowed: {', '.join(BACKENDS)})")
    package = {"ray": "ray", "dask": "distributed"}.get(backend)
    if package is not None and importlib.util.find_spec(package) is None:
        raise UserError(f"--backend {backend} needs the extra 'cluster' (pip install 'assay[cluster]')")


@contextlib.contextmanager
def joblib_backend(backend: str, jobs: int, address: str | None) -> Iterator[None]:
    """Make ``joblib.Parallel`` use the backend inside the block."""
    import joblib

    check_backend(backend)
    if backend == "loky":
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
    elif backend == "ray":
        import ray
        from ray.util.joblib import register_ray

        if not ray.is_initialized():
            cores = None if address else jobs
            with _answers("ray", address):
                ray.init(address=address, num_cpus=cores, log_to_driver=False, include_dashboard=False)
        register_ray()
        with joblib.parallel_config("ray", n_jobs=jobs):
            yield
    else:
        from distributed import Client

        options = {"address": address} if address else {"n_workers": jobs, "threads_per_worker": 1}
        with _answers("dask", address):
            client = Client(**options)
        with client, joblib.parallel_config("dask", n_jobs=jobs):
            yield


@contextlib.contextmanager
def _answers(kind: str, address: str | None) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        where = f"at {address}" if address else "on this machine"
        raise UserError(f"no {kind} cluster answers {where}: {str(error).splitlines()[0]}") from error


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
