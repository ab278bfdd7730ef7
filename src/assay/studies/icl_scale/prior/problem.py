"""In-context classification with a prior rule: most tasks have one and the same rule, a few have a rule of their own.

The features are known: the first coordinate decides the prior rule, a random direction the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

KINDS = ("prior", "random", "mixed")


@dataclass(frozen=True)
class Prompts:
    """Inputs (seeds, prompts, n, d), labels of ±1 (seeds, prompts, n), queries (seeds, prompts, d) and their labels
    (seeds, prompts), which are never flipped."""

    inputs: Tensor
    labels: Tensor
    queries: Tensor
    answers: Tensor

    def tokens(self, order: Tensor | None = None, flipped: float = 0.0) -> Tensor:
        """(seeds, prompts, n+1, d+1): a token (x, y) per example, and (query, 0). Of the examples the first ``flipped``
        share in ``order`` (seeds, prompts, n) has the other label: a larger share flips the same ones and more."""
        if not 0 <= flipped <= 1:
            raise ValueError(f"a share of {flipped} of the labels cannot be flipped: it lies between 0 and 1")
        labels = self.labels
        if order is not None:
            labels = torch.where(order < round(flipped * labels.shape[-1]), -labels, labels)
        examples = torch.cat([self.inputs, labels.unsqueeze(-1)], -1)
        query = torch.cat([self.queries, torch.zeros_like(self.answers).unsqueeze(-1)], -1)
        return torch.cat([examples, query.unsqueeze(-2)], -2)


@dataclass(frozen=True)
class PriorRule:
    """y = sign⟨w, x⟩ with Gaussian x. The prior rule has w = e₁; with probability ``random`` a task has a random w."""

    dim: int
    examples: int
    random: float

    def __post_init__(self) -> None:
        if self.dim < 2 or self.examples < 1:
            raise ValueError(f"{self.dim} dimensions and {self.examples} examples: at least 2 and at least 1")
        if not 0 <= self.random <= 1:
            raise ValueError(f"a task has a random rule with a probability between 0 and 1, not {self.random}")

    def sample(self, seeds: Seeds, name: str, prompts: int, kind: str = "mixed") -> Prompts:
        """Prompts as in training (``mixed``), or all with the prior rule, or all with random ones."""
        if kind not in KINDS:
            raise ValueError(f"unknown kind of task '{kind}' (allowed: {', '.join(KINDS)})")
        chance = {"prior": 0.0, "random": 1.0, "mixed": self.random}[kind]
        drawn = seeds.normal(f"{name}, inputs", prompts, self.examples + 1, self.dim)
        rules = seeds.normal(f"{name}, rules", prompts, self.dim)
        prior = torch.zeros_like(rules)
        prior[..., 0] = 1
        own = seeds.uniform(f"{name}, kinds", prompts) < chance
        rules = torch.where(own.unsqueeze(-1), rules, prior)
        signs = (drawn @ rules.unsqueeze(-1)).squeeze(-1)
        labels = torch.where(signs >= 0, 1.0, -1.0).to(drawn)
        return Prompts(drawn[:, :, :-1], labels[..., :-1], drawn[:, :, -1], labels[..., -1])
