"""A dask cluster behind joblib, which is never this process itself."""

from __future__ import annotations

import joblib
from joblib._dask import DaskDistributedBackend


class DaskWorkers(DaskDistributedBackend):  # type: ignore[misc]
    """joblib's backend for dask. Where it has one worker, joblib would compute in the process that asks."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        return max(2, int(super().effective_n_jobs(n_jobs)))


def register() -> None:
    joblib.register_parallel_backend("assay-dask", DaskWorkers)
