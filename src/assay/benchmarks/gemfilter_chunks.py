"""Long prompts in chunks: GemFilter's pass over pieces of the prompt, beside the whole prompt and full prefill."""

from __future__ import annotations

import gc
import statistics
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from assay._extras import needs
from assay.benchmarks.gemfilter import LLAMA, SMALL, model_of
from assay.evaluation.measure import Timed, timed
from assay.lab.errors import UserError
from assay.methods.gemfilter.filter import GemFilter


@dataclass(frozen=True)
class Plan:
    """What is measured: a model's shape, the filter's layer, the budget and the size of a chunk; prompt lengths, each
    with how often it is read in chunks, whole by the filter and by full attention: 0 where that is not tried."""

    shape: dict[str, Any]
    layer: int
    keep: int
    chunk: int
    lengths: dict[int, tuple[int, int, int]]


# What takes minutes is measured once. Full prefill of half a million tokens and more is not tried.
GPU = Plan(LLAMA, 13, 1024, 4096, {122_880: (3, 2, 2), 262_144: (2, 0, 1), 524_288: (1, 0, 0), 1_048_576: (1, 0, 0)})
CPU = Plan(SMALL, 18, 1024, 1024, {8192: (2, 2, 2)})


def run(device: str) -> dict[str, Any]:
    """A row per prompt length, the methods interleaved. On the CPU ratios are what counts. What was not tried, or did
    not fit into memory, has no number."""
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise UserError(needs("the benchmark gemfilter_chunks", "llm")) from None
    plan = GPU if device == "cuda" else CPU
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* tokens at once exceed")
        rows = _rows(plan, device)
        if device == "cuda":
            for row, found in zip(rows, _filter_alone(plan, device), strict=True):
                row["filter only GiB"] = _gib(found)
    sizes = {"layer": plan.layer, "layers": plan.shape["num_hidden_layers"], "keep": plan.keep, "chunk": plan.chunk}
    return {**sizes, "rows": rows}


def _rows(plan: Plan, device: str) -> list[dict[str, Any]]:
    model = model_of(plan.shape, device)
    cut = GemFilter(layer=plan.layer, keep=plan.keep, chunk=plan.chunk)
    whole = replace(cut, chunk=None)
    short = _ids(plan, min(4096, *plan.lengths), device)
    for warm in (whole, cut):  # kernels and the allocator's first blocks
        warm.select(model, short)
    _full(model, short)
    rows = []
    for length, (times_chunks, times_whole, times_full) in plan.lengths.items():
        ids = _ids(plan, length, device)
        found: dict[str, list[Timed[Any]]] = {"full": [], "whole": [], "chunks": [], "answer": []}
        for repeat in range(times_chunks):
            print(f"assay: {length} tokens, round {repeat + 1} of {times_chunks}", file=sys.stderr)
            if repeat < times_full:
                found["full"] += _tried(partial(_full, model, ids), device)
            if repeat < times_whole:
                found["whole"] += _tried(partial(whole.select, model, ids), device)
            found["chunks"].append(timed(partial(cut.select, model, ids), device))
            kept = found["chunks"][-1].made.input_ids
            found["answer"].append(timed(partial(_full, model, kept), device))
        rows.append(_row(length, found, device))
    return rows


def _ids(plan: Plan, length: int, device: str) -> torch.Tensor:
    return torch.randint(3, plan.shape["vocab_size"], (1, length), device=device)


@torch.no_grad()
def _full(model: Any, ids: torch.Tensor) -> None:
    model(ids, use_cache=True, logits_to_keep=1)


def _tried(work: Callable[[], Any], device: str) -> list[Timed[Any]]:
    """What a piece of work took, nothing where the GPU's memory does not hold it."""
    gc.collect()
    try:
        return [timed(work, device)]
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return []


def _row(length: int, found: dict[str, list[Timed[Any]]], device: str) -> dict[str, Any]:
    seconds = {name: _median([part.seconds for part in parts]) for name, parts in found.items()}
    reading, answer = (statistics.median(part.seconds for part in found[name]) for name in ("chunks", "answer"))
    row: dict[str, Any] = {
        "tokens": length,
        "chunks to full": _ratio(seconds["full"], reading),
        "chunks and answer to full": _ratio(seconds["full"], reading + answer),
        "chunks to whole": _ratio(seconds["whole"], reading),
    }
    if device == "cuda":
        row["chunks µs per token"] = round(1e6 * reading / length, 2)
        row |= {f"{name} s": None if value is None else round(value, 3) for name, value in seconds.items()}
        row |= {f"{name} GiB": _gib(found[name]) for name in ("full", "whole", "chunks")}
    return row


def _ratio(theirs: float | None, ours: float) -> float | None:
    """How many times as fast as another one."""
    return None if theirs is None else round(theirs / ours, 2)


def _median(numbers: list[float]) -> float | None:
    return statistics.median(numbers) if numbers else None


def _gib(found: list[Timed[Any]]) -> float | None:
    peak = _median([float(part.peak_bytes or 0) for part in found])
    return None if peak is None else round(peak / 2**30, 2)


def _filter_alone(plan: Plan, device: str) -> list[list[Timed[Any]]]:
    """Chunks when only the filter's layers are there."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    model = model_of(plan.shape, device, layers=plan.layer + 1)
    cut = GemFilter(layer=plan.layer, keep=plan.keep, chunk=plan.chunk)
    return [_tried(partial(cut.select, model, _ids(plan, length, device)), device) for length in plan.lengths]
