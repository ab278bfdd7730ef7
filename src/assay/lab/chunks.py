"""How many seeds train together: from a model of the working set and the kind of device, never from a clock."""

from __future__ import annotations

MAX_CHUNK = 64

# Batching seeds saves the cost of launching small kernels, and loses when the seeds' joint working set leaves the
# cache that cores share. `assay bench ensembles` measures what these budgets give.
_BUDGET = {"cpu": 8.0 * 2**20, "cuda": 8.0 * 2**30}


def chunk_size(working_set: float | None, device: str) -> int:
    """The number of seeds in a full chunk, given the bytes that one seed touches in a training step."""
    if working_set is None:
        return MAX_CHUNK
    if working_set <= 0:
        raise ValueError(f"a working set of {working_set} bytes is not possible")
    return max(1, min(MAX_CHUNK, int(_BUDGET[device] // working_set)))


def chunks(seeds: int, size: int) -> list[tuple[int, ...]]:
    """Seeds 0..seeds−1 in chunks with fixed boundaries, so that more seeds add chunks and change none but the last."""
    return [tuple(range(start, min(start + size, seeds))) for start in range(0, seeds, size)]
