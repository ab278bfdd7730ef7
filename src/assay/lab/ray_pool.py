"""Ray's pool of workers behind joblib, with results that come back one by one.

Ray's own backend puts its pool under a class of joblib's for good, hands whole lists back, starts its workers anew for
each of them, and computes in the calling process where one worker is asked for.
"""

from __future__ import annotations

from typing import Any

import joblib
from joblib._parallel_backends import MultiprocessingBackend
from ray.util.multiprocessing.pool import Pool


class RayPool(MultiprocessingBackend):  # type: ignore[misc]
    """joblib's backend for a pool, with ray's pool in it."""

    supports_return_generator = True

    def __init__(self, ray_remote_args: dict[str, Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._remote = ray_remote_args or {}

    def effective_n_jobs(self, n_jobs: int) -> int:
        return n_jobs

    def configure(self, n_jobs: int = 1, parallel: Any = None, **ignored: Any) -> int:
        self._pool = Pool(n_jobs, ray_remote_args=self._remote)
        self.parallel = parallel
        return n_jobs


def register() -> None:
    joblib.register_parallel_backend("assay-ray", RayPool)
