"""Workers, as far as they differ from this process."""

import pytest


@pytest.mark.filterwarnings("ignore:A worker stopped")
def test_a_worker_that_keeps_memory_is_not_taken_for_a_leak():
    pytest.importorskip("psutil", reason="joblib looks at memory only where psutil is installed")
    joblib = pytest.importorskip("joblib")

    def hold(seconds):
        import os
        import sys
        import time

        import numpy as np

        from assay.lab.backends import prepare_worker

        prepare_worker()
        sys.__dict__.setdefault("kept by a test", []).append(np.ones(50_000_000))  # 400 MB, as long as the worker lives
        time.sleep(seconds)
        return os.getpid()

    # After its first task a worker notes its size; from then on it looks once a second.
    with joblib.parallel_config("loky", n_jobs=2, idle_worker_timeout=1):
        workers = joblib.Parallel(batch_size=1, pre_dispatch=2)(joblib.delayed(hold)(1.1) for _ in range(6))
    assert len(set(workers)) == 2
