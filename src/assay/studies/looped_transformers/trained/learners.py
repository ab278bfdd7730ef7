"""Does training find the construction? Adam on the step size and the weights of the loop, over random prompts.

An extension: the source sets its weights by hand and trains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from ..problem import LinearVectorGeneration, Prompts

STARTS = ("construction", "random")
LOSSES = ("task", "vector")


@dataclass(frozen=True)
class Weights:
    """A looped transformer per seed: step (seeds,), query_key and value_output (seeds, dim+1, dim+1).

    The step is one number for all prompts and loops, relative to the number of examples: η = step/n.
    """

    step: Tensor
    query_key: Tensor
    value_output: Tensor

    def outputs(self, gram: Tensor, loops: int) -> Tensor:
        """The output at α = 1 (seeds, prompts, dim) from the examples' gram ZᵀZ/n (seeds, prompts, dim+1, dim+1).

        The query row reads the examples only through this matrix, so a loop costs O(dim²); outputs are linear in α.
        """
        row = torch.zeros_like(gram[..., 0])
        row[..., -1] = 1
        for _ in range(loops):
            read = (gram * (row @ self.query_key).unsqueeze(-2)).sum(-1)
            row = row - self.step[:, None, None] * (read @ self.value_output)
        return -row[..., :-1]

    def detached(self) -> Weights:
        return Weights(self.step.detach(), self.query_key.detach(), self.value_output.detach())


def constructed(seeds: Seeds, dim: int, step: float = 0.5) -> Weights:
    """The construction's weights for every seed, with one step for all prompts."""
    eye = torch.eye(dim + 1, device=seeds.device, dtype=seeds.dtype).repeat(len(seeds), 1, 1)
    keep = eye.clone()
    keep[:, -1, -1] = 0
    return Weights(torch.full((len(seeds),), step, device=seeds.device, dtype=seeds.dtype), eye, keep)


def examples_gram(prompts: Prompts) -> Tensor:
    """ZᵀZ/n of the examples with their targets: (seeds, ..., dim+1, dim+1)."""
    rows = torch.cat([prompts.inputs, prompts.targets.unsqueeze(-1)], -1)
    return rows.mT @ rows / rows.shape[-2]


@dataclass(frozen=True)
class Training:
    """Adam with a cosine schedule on batches from a pool of prompts.

    ``free`` is ``step`` (the construction with one learned step) or ``weights`` (step, query_key and value_output).
    ``loss`` is ``task``, (⟨q, θ*⟩ − 1)², or ``vector``, ‖q − θ*‖². ``scale`` is the deviation of random weights.
    """

    loops: int
    steps: int
    batch: int
    pool: int
    rate: float
    free: str = "weights"
    start: str = "random"
    loss: str = "task"
    scale: float = 0.3

    def __post_init__(self) -> None:
        if self.free not in ("step", "weights") or self.start not in STARTS or self.loss not in LOSSES:
            raise ValueError(f"unknown training: free {self.free}, start {self.start}, loss {self.loss}")

    def initial(self, seeds: Seeds, dim: int) -> Weights:
        weights = constructed(seeds, dim)
        if self.start == "construction":
            return weights
        shape = (dim + 1, dim + 1)
        key, value = (self.scale * seeds.normal(f"initial {name}", *shape) for name in ("query_key", "value_output"))
        return Weights(weights.step, key, value)

    def train(self, problem: LinearVectorGeneration, seeds: Seeds) -> Weights:
        """The trained weights of every seed."""
        prompts = problem.sample(seeds, "training", self.pool)
        gram, truth = examples_gram(prompts), prompts.truth
        weights = self.initial(seeds, problem.dim)
        trained = [weights.step]
        if self.free == "weights":
            trained += [weights.query_key, weights.value_output]
        for part in trained:
            part.requires_grad_(True)
        optimizer = torch.optim.Adam(trained, lr=self.rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps)
        chosen = torch.arange(len(seeds), device=gram.device).unsqueeze(1)
        for index in seeds.batches("batches", self.pool, self.batch, self.steps):
            loss = self._loss(weights.outputs(gram[chosen, index], self.loops), truth[chosen, index])
            optimizer.zero_grad()
            loss.mean(1).sum().backward()  # type: ignore[no-untyped-call]
            for part in trained:
                _clip(part)
            optimizer.step()
            schedule.step()
        return weights.detached()

    def _loss(self, output: Tensor, truth: Tensor) -> Tensor:
        if self.loss == "task":
            return ((output * truth).sum(-1) - 1).square()
        return (output - truth).square().sum(-1)


def _clip(part: Tensor) -> None:
    """Scale each seed's gradient to a norm of at most 1, seed by seed: a clip over all would tie them together."""
    assert part.grad is not None
    norms = part.grad.reshape(len(part), -1).norm(dim=1).clamp(min=1)
    part.grad.div_(norms.reshape(-1, *[1] * (part.ndim - 1)))
