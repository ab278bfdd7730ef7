"""Seeds trained together as the plan would chunk them, against one training loop per seed."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.lab.chunks import chunk_size, chunks
from assay.training.seeds import Seeds

SEEDS = 64


@dataclass(frozen=True)
class Size:
    name: str
    inputs: int
    neurons: int
    batch: int
    steps: int

    @property
    def working_set(self) -> float:
        """Bytes one seed touches in a step: weights with gradient and momentum, the batch, activations and gates."""
        return 4.0 * (3 * self.inputs * self.neurons + self.batch * (self.inputs + 3 * self.neurons))


SIZES = (Size("small", 20, 32, 64, 60), Size("middle", 100, 128, 256, 20), Size("large", 100, 300, 1000, 5))


def run(device: str) -> dict[str, Any]:
    """Ratios of the time of one loop per seed to that of the planned ensemble, interleaved, one thread on both sides.

    On a GPU the question is another: how much more do 64 seeds cost than one?
    """
    return {"rows": [_gpu_row(size) if device == "cuda" else _cpu_row(size) for size in SIZES]}


def train(size: Size, seeds: Seeds, data: tuple[Tensor, Tensor]) -> Tensor:
    """A two-layer ReLU network on the hinge loss, every seed on its own data: (seeds, batch, inputs)."""
    inputs, labels = data
    weights: Tensor = (seeds.normal("weights", size.neurons, size.inputs) * size.inputs**-0.5).requires_grad_()
    biases = torch.zeros(len(seeds), 1, size.neurons, device=seeds.device, dtype=seeds.dtype, requires_grad=True)
    output = (seeds.normal("output", size.neurons, 1) * size.neurons**-0.5).requires_grad_()
    optimizer = torch.optim.SGD([weights, biases, output], lr=0.1, momentum=0.9)
    for _ in range(size.steps):
        optimizer.zero_grad()
        margin = 1 - labels * (torch.relu(torch.baddbmm(biases, inputs, weights.mT)) @ output).squeeze(-1)
        margin.clamp(min=0).mean(1).sum().backward()
        optimizer.step()
    return weights.detach()


def _data(size: Size, seeds: Seeds) -> tuple[Tensor, Tensor]:
    inputs = seeds.normal("inputs", size.batch, size.inputs)
    return inputs, inputs[..., 0].sign()


def _cpu_row(size: Size, repeats: int = 5) -> dict[str, Any]:
    chunk = chunk_size(size.working_set, "cpu")
    alone = [Seeds((seed,)) for seed in range(SEEDS)]
    together = [Seeds(part) for part in chunks(range(SEEDS), chunk)]
    sides = {"loop": [(s, _data(size, s)) for s in alone], "ensemble": [(s, _data(size, s)) for s in together]}
    times: dict[str, list[float]] = {"loop": [], "ensemble": []}
    for side, work in sides.items():
        train(size, *work[0])
        times[side].clear()
    for _ in range(repeats):
        for side, work in sides.items():
            started = time.perf_counter()
            for seeds, data in work:
                train(size, seeds, data)
            times[side].append(time.perf_counter() - started)
    ratios = [a / b for a, b in zip(times["loop"], times["ensemble"], strict=True)]
    return {
        "size": size.name,
        "shape": [size.inputs, size.neurons, size.batch],
        "seeds": SEEDS,
        "chunk": chunk,
        "ratio": round(statistics.median(ratios), 3),
        "range": [round(min(ratios), 3), round(max(ratios), 3)],
    }


def _gpu_row(size: Size, repeats: int = 9) -> dict[str, Any]:
    chunk = chunk_size(size.working_set, "cuda")
    longer = Size(size.name, size.inputs, size.neurons, size.batch, 200)
    times: dict[int, list[float]] = {1: [], SEEDS: []}
    work = {count: Seeds(tuple(range(count)), "cuda") for count in times}
    data = {count: _data(longer, seeds) for count, seeds in work.items()}
    for repeat in range(repeats + 2):
        for count, seeds in work.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            train(longer, seeds, data[count])
            torch.cuda.synchronize()
            if repeat >= 2:
                times[count].append(time.perf_counter() - started)
    one, many = statistics.median(times[1]), statistics.median(times[SEEDS])
    return {
        "size": size.name,
        "shape": [size.inputs, size.neurons, size.batch],
        "seeds": SEEDS,
        "chunk": chunk,
        "64 seeds / 1 seed": round(many / one, 3),
        "ms per step of 64": round(1000 * many / longer.steps, 4),
    }
