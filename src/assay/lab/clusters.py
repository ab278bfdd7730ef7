"""Where joblib sends units: loky's workers on this machine, a ray or dask cluster, jobs of Slurm."""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import joblib

from .backends import default_jobs
from .errors import UserError
from .events import Listener, Said, nobody
from .interrupts import interrupts_stay

BACKENDS = ("loky", "ray", "dask", "slurm")
_PACKAGES = {"ray": "ray", "dask": "distributed", "slurm": "dask_jobqueue"}
# What results take on their way; more goes through the disk. Ray's own choice is a third of the memory.
_RAY_STORE = 256 * 2**20


def check_backend(backend: str, address: str | None = None) -> None:
    """Refuse an unknown backend, or one whose package is missing, before anything is written."""
    if backend not in BACKENDS:
        raise UserError(f"unknown backend '{backend}' (allowed: {', '.join(BACKENDS)})")
    package = _PACKAGES.get(backend)
    if package is not None and importlib.util.find_spec(package) is None:
        raise UserError(f"--backend {backend} needs the extra 'cluster' (pip install 'assay-lab[cluster]')")
    if address is not None and backend not in ("ray", "dask"):
        raise UserError("--address names a cluster, so say of which kind: --backend ray or --backend dask")


@dataclass(frozen=True)
class Workers:
    """Who computes: ``count`` says how many there are to use, ``renew`` comes after one of them died."""

    count: Callable[[], int]
    renew: Callable[[], None] = lambda: None


class Held:
    """A backend that several plans share: opened for the first unit of them all, closed at the end of the block.
    ``most`` is how many units there may be in all of them."""

    def __init__(self) -> None:
        self.most = 1
        self.workers: Workers | None = None
        self._stack = contextlib.ExitStack()

    def open(self, backend: contextlib.AbstractContextManager[Workers]) -> Workers:
        if self.workers is None:
            self.workers = self._stack.enter_context(backend)
        return self.workers

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)


@contextlib.contextmanager
def joblib_backend(
    backend: str, jobs: int, address: str | None, device: str = "cpu", tell: Listener = nobody
) -> Iterator[Workers]:
    """Make ``joblib.Parallel`` use the backend inside the block: as many workers as were asked for, or as a cluster has
    (``jobs`` is 0)."""
    check_backend(backend, address)
    if backend == "loky":
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield Workers(lambda: jobs)
    elif backend == "ray":
        with _ray(jobs, address, device) as workers:
            yield workers
    else:
        with _dask(backend, jobs, address, device, tell) as workers:
            yield workers


@contextlib.contextmanager
def _ray(jobs: int, address: str | None, device: str) -> Iterator[Workers]:
    import ray

    from .ray_pool import register

    kind = "GPU" if device == "cuda" else "CPU"
    ours = not ray.is_initialized()

    def connect() -> None:
        local: dict[str, Any] = {"num_cpus": jobs or default_jobs(), "object_store_memory": _RAY_STORE}
        quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": "ERROR"}
        with _answers("ray", address):
            ray.init(**({"address": address} if address else {**local, "address": "local"}), **quiet)

    def renew() -> None:
        """Whatever this run still has in the cluster ends with its connection."""
        if ours:
            ray.shutdown()
            connect()

    if ours:
        connect()

    def workers() -> int:
        there = int(ray.cluster_resources().get(kind, 0))
        if not there:
            raise UserError(f"the ray cluster has no {kind} that a unit could be computed on")
        return min(jobs, there) if jobs else there

    register()
    needs = {"num_cpus": 1, "num_gpus": 1} if device == "cuda" else {"num_cpus": 1}
    try:
        with joblib.parallel_config("assay-ray", ray_remote_args=needs):
            yield Workers(workers, renew)
    finally:
        if ours:
            ray.shutdown()


@contextlib.contextmanager
def _dask(backend: str, jobs: int, address: str | None, device: str, tell: Listener) -> Iterator[Workers]:
    from .dask_pool import register

    register()
    with contextlib.ExitStack() as stack:
        with _answers("dask", address):
            client = stack.enter_context(_client(backend, jobs, address, device, stack))
        if not client.ncores():
            tell(Said("waiting for the first worker of the cluster"))
            _wait(client, backend, tell)
        asks = {"resources": {"GPU": 1}} if device == "cuda" else {}
        stack.enter_context(joblib.parallel_config("assay-dask", n_jobs=-1, **asks))

        def workers() -> int:
            _send_again(client, backend, jobs, tell)
            there = max(1, int(sum(client.ncores().values())))
            return min(jobs, there) if jobs else there

        yield Workers(workers)


def _send_again(client: Any, backend: str, jobs: int, tell: Listener) -> None:
    """Replace jobs of Slurm that ended since units were last sent: a sweep may outlive their time."""
    gone = not client.ncores()
    if backend == "slurm":
        from .slurm_jobs import send

        if gone:  # those that ended are forgotten first: jobs of several workers would count as running for ever
            client.cluster.scale(0)
            while client.cluster.workers:
                time.sleep(0.1)
        send(client.cluster, jobs)
    if gone:
        tell(Said("waiting for a worker of the cluster, which has none left"))
        _wait(client, backend, tell)


def _wait(client: Any, backend: str, tell: Listener) -> None:
    if backend == "slurm":
        from .slurm_jobs import wait_for_a_worker

        wait_for_a_worker(client, tell)
    else:
        client.wait_for_workers(1)


def _client(backend: str, jobs: int, address: str | None, device: str, stack: contextlib.ExitStack) -> Any:
    from distributed import Client, LocalCluster

    if address:
        return Client(address=address)
    if backend == "slurm":
        return Client(stack.enter_context(_slurm(jobs, device)))
    quiet: dict[str, Any] = {"dashboard_address": None, "worker_dashboard_address": None}
    gpu = {"resources": {"GPU": 1}} if device == "cuda" else {}
    cluster = LocalCluster(n_workers=jobs or default_jobs(), threads_per_worker=1, **quiet, **gpu)
    return Client(stack.enter_context(cluster))


def _slurm(jobs: int, device: str) -> Any:
    """A dask cluster whose workers are jobs of Slurm. Queue, account, memory and time are those of dask-jobqueue's own
    file; each worker has one core."""
    with interrupts_stay():  # it makes an interrupt a plain exit, after which no run is marked as interrupted
        from .slurm_jobs import send, slurm_cluster

    options = _job_options(device)
    try:
        cluster = slurm_cluster(**options)
    except (OSError, ValueError) as error:
        raise UserError(f"no jobs can be sent to Slurm: {str(error).splitlines()[0]}") from error
    send(cluster, jobs)
    return cluster


def _job_options(device: str) -> dict[str, Any]:
    """What a job of Slurm holds: a worker for each of its cores, or one that has its GPU to itself."""
    import dask

    settings = dask.config.get("jobqueue.slurm", {})
    cores = settings.get("cores") or 1
    options: dict[str, Any] = {"cores": cores, "processes": cores, "memory": settings.get("memory") or "4GB"}
    if device == "cuda":
        extra = list(settings.get("worker-extra-args") or [])
        options |= {"worker_extra_args": [*extra, "--resources", "GPU=1"]}
        # Slurm is asked for as many cores as before; what torch does beside the GPU may use them.
        options |= {"cores": 1, "processes": 1, "job_cpu": settings.get("job-cpu") or cores}
    return options


@contextlib.contextmanager
def _answers(kind: str, address: str | None) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        where = f"at {address}" if address else "on this machine"
        raise UserError(f"no {kind} cluster answers {where}: {str(error).splitlines()[0]}") from error
