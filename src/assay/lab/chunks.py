"""How many seeds train together: from a model of the working set and the kind of device, never from a clock."""

from __future__ import annotations

from collections.abc import Sequence

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


def chunks(seeds: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Runs of neighbouring seeds, none of which crosses a multiple of ``size``: the boundaries lie where they lie
    whatever seeds are asked for, so that more seeds are more chunks, or longer ones, and never others."""
    found: list[tuple[int, ...]] = []
    for seed in seeds:
        if found and found[-1][-1] == seed - 1 and seed % size:
            found[-1] += (seed,)
        else:
            found.append((seed,))
    return found
