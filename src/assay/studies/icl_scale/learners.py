"""One layer of linear self-attention with a key-query matrix of limited rank, for all ranks and seeds at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from .problem import InContextRegression, Prompts
from .theory import pretraining_loss


@dataclass(frozen=True)
class LinearAttention:
    """The entries that the answer depends on: key (seeds, ranks, d, d+1) and query (seeds, ranks, d, d), of which a
    network of rank r has r rows and zeros below, and value (seeds, ranks, d+1), the last row of the value matrix."""

    key: Tensor
    query: Tensor
    value: Tensor

    def __call__(self, gram: Tensor, queries: Tensor) -> Tensor:
        """Answers (seeds, ranks, prompts) = valueᵀ(EEᵀ/ρ)(keyᵀ query)x."""
        seeds, prompts, wide, _ = gram.shape
        # (seeds, ranks, d+1) @ (seeds, d+1, prompts·(d+1)): one product for all ranks of a seed.
        read = self.value @ gram.transpose(1, 2).reshape(seeds, wide, -1)
        asked = queries.unsqueeze(1) @ (self.key.mT @ self.query).mT
        answers: Tensor = (read.view(seeds, -1, prompts, wide) * asked).sum(-1)
        return answers

    def effective(self) -> Tensor:
        """uU (seeds, ranks, d, d): the answer is (Σ yx/ρ)ᵀ uU x where the other entries vanish."""
        return self.value[..., -1, None, None] * (self.key[..., :-1].mT @ self.query)

    def stray(self) -> Tensor:
        """The largest other entry (seeds, ranks), which is 0 at the optimum: of the value row beside u, relative to u,
        and of the row of the key-query matrix that belongs to the labels."""
        beside = self.value[..., :-1].abs().amax(-1) / self.value[..., -1].abs()
        labels = (self.key[..., -1:].mT @ self.query).abs().amax((-2, -1))
        return torch.maximum(beside, labels)

    def detached(self) -> LinearAttention:
        return LinearAttention(self.key.detach(), self.query.detach(), self.value.detach())


def answers(prompts: Prompts, effective: Tensor) -> Tensor:
    """The answers (seeds, ranks, prompts) of networks that are given by uU (seeds, ranks, d, d) alone."""
    read = (prompts.labels.unsqueeze(-2) @ prompts.inputs).squeeze(-2) / prompts.labels.shape[-1]
    return (read.unsqueeze(1) @ effective * prompts.queries.unsqueeze(1)).sum(-1)


@dataclass(frozen=True)
class Pretraining:
    """Adam on fresh prompts, its rate falling linearly, or heavy-ball descent on the population loss.

    Queries start equal to keys: with independent factors a network of rank 1 may end at the saddle U = 0, where
    both factors and the value have shrunk.
    """

    examples: int
    steps: int
    batch: int = 256
    rate: float = 0.01
    last_rate: float = 1e-5
    scale: float = 0.1

    def __post_init__(self) -> None:
        if self.scale == 0:
            raise ValueError("factors that start at exactly zero stay there: it is a saddle of the loss")
        if self.examples < 1 or self.steps < 1 or self.batch < 1:
            raise ValueError("examples, steps and batch must be at least 1")

    def initial(self, seeds: Seeds, dim: int, ranks: Sequence[int]) -> LinearAttention:
        if wrong := [r for r in ranks if not 1 <= r <= dim]:
            raise ValueError(f"a key-query matrix of rank {wrong[0]} is not possible in {dim} dimensions")
        rows = torch.arange(dim, device=seeds.device) < torch.tensor(ranks, device=seeds.device).unsqueeze(1)
        mask = rows.to(seeds.dtype).unsqueeze(-1)
        # Rows of zeros have no gradient, in the key or in the query, so that they stay zero.
        key = self.scale * seeds.normal("initial key", len(ranks), dim, dim + 1) * mask
        value = self.scale * seeds.normal("initial value", len(ranks), dim + 1)
        value[..., -1] = 0.5
        return LinearAttention(key, key[..., :-1].clone(), value)

    def train(self, problem: InContextRegression, seeds: Seeds, ranks: Sequence[int]) -> LinearAttention:
        """Networks of all ranks after training on the same sampled prompts."""
        network = self.initial(seeds, problem.dim, ranks)
        parts = [part.requires_grad_(True) for part in (network.key, network.query, network.value)]
        optimiser = torch.optim.Adam(parts, lr=self.rate)
        for step in range(self.steps):
            for group in optimiser.param_groups:
                group["lr"] = self.rate + (self.last_rate - self.rate) * step / self.steps
            prompts = problem.sample(seeds, f"pretraining {step}", self.batch, self.examples)
            errors = network(prompts.gram(), prompts.queries) - prompts.targets.unsqueeze(1)
            optimiser.zero_grad()
            (0.5 * errors.square().mean(-1).sum()).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return network.detached()

    def descend(self, problem: InContextRegression, seeds: Seeds, ranks: Sequence[int]) -> Tensor:
        """uU (seeds, ranks, d, d) after descent on the population loss of Lemma 5.1, in factors and u."""
        start = self.initial(seeds, problem.dim, ranks)
        key, query, u = start.key[..., :-1].clone(), start.query, start.value[..., -1].clone()
        parts = [part.requires_grad_(True) for part in (key, query, u)]
        covariance = problem.covariance(seeds).unsqueeze(1)
        optimiser = torch.optim.SGD(parts, lr=self.rate, momentum=0.9)
        for _ in range(self.steps):
            optimiser.zero_grad()
            loss = pretraining_loss(key.mT @ query, u, covariance, self.examples).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return (u[..., None, None] * (key.mT @ query)).detach()
