"""Ray's pool of workers behind joblib, with results that come back one by one.

Ray's own backend puts its pool under a class of joblib's for good, hands whole lists back, starts its workers anew for
each of them, computes in the calling process where one worker is asked for, waits without end for a worker whose node
is gone, and queues units behind a long one while other workers are idle.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import joblib
import ray
from joblib._parallel_backends import MultiprocessingBackend
from ray.util.multiprocessing.pool import Pool

_GRACE = 30.0  # seconds in which workers start; those that do not are done without


class WorkerPool(Pool):  # type: ignore[misc]
    """Ray's pool of those workers that do start, each of which gets a unit when it is free."""

    def __init__(self, workers: int, needs: dict[str, Any]) -> None:
        self._busy: Counter[int] = Counter()
        self._choice = threading.RLock()
        self._kind = "GPU" if needs.get("num_gpus") else "CPU"
        super().__init__(workers, ray_remote_args=needs)

    def _init_ray(self, processes: int, ray_address: str | None = None) -> int:
        return processes

    def _start_actor_pool(self, processes: int) -> None:
        self._pool_actor = None
        self._actor_pool: list[Any] = []
        while not self._actor_pool:
            # After a node was lost a worker may start and never be heard of: then others are started in their place.
            self._actor_pool = self._started(processes)

    def _started(self, processes: int) -> list[Any]:
        asked = {entry[0].ping.remote(): entry for entry in (self._new_actor_entry() for _ in range(processes))}
        there: list[Any] = []
        deadline = time.monotonic() + _GRACE
        # A node that died is known to the cluster only after a while: do not wait for its workers for longer.
        while len(there) < max(1, min(processes, self._places())) and time.monotonic() < deadline:
            there, _ = ray.wait(list(asked), num_returns=processes, timeout=1.0)
        answered = [answer for answer in there if _answered(answer)]
        for answer, (actor, _) in asked.items():
            if answer not in answered:
                ray.kill(actor)
        return [asked[answer] for answer in answered]

    def end(self) -> None:
        for actor, _ in self._actor_pool:
            ray.kill(actor)
        self._closed = True

    def _places(self) -> int:
        return int(ray.cluster_resources().get(self._kind, 0))

    def _next_actor_index(self) -> int:
        """The worker with the fewest units, which is counted as one more."""
        index = min(range(len(self._actor_pool)), key=lambda i: self._busy[i])
        self._busy[index] += 1
        self._chosen = index
        return index

    def apply_async(
        self,
        func: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        callback: Callable[[Any], None] | None = None,
        error_callback: Callable[[Any], None] | None = None,
    ) -> Any:
        with self._choice:
            chosen: list[int] = []

            def free(then: Callable[[Any], None] | None) -> Callable[[Any], None]:
                def heard(answer: Any) -> None:
                    with self._choice:
                        self._busy[chosen[0]] -= 1
                    if then is not None:
                        then(answer)

                return heard

            sent = super().apply_async(func, args, kwargs, free(callback), free(error_callback))
            chosen.append(self._chosen)
        return sent


def _answered(answer: Any) -> bool:
    try:
        ray.get(answer)
    except ray.exceptions.RayError:
        return False
    return True


class RayPool(MultiprocessingBackend):  # type: ignore[misc]
    """joblib's backend for a pool, with ray's workers in it."""

    supports_return_generator = True

    def __init__(self, ray_remote_args: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._needs = ray_remote_args or {}
        self._pool: WorkerPool | None = None

    def effective_n_jobs(self, n_jobs: int) -> int:
        return n_jobs

    def configure(self, n_jobs: int = 1, parallel: Any = None, **ignored: Any) -> int:
        self._pool = WorkerPool(n_jobs, self._needs)
        self.parallel = parallel
        return max(2, n_jobs)  # of one, joblib computes in the process that asks, and leaves the pool as it is

    def terminate(self) -> None:
        """Take the workers down at once: their places in the cluster are wanted for the next ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.end()


def register() -> None:
    joblib.register_parallel_backend("assay-ray", RayPool)
