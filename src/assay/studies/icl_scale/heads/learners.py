"""Parity networks trained on the exact loss of long prompts, many starts per seed at once.

Heads are diagonal and in units of 1/(2γ), so that a head reads vᵢφᵢ + vⱼφⱼ; half of them are negative. Fixed output
weights of ±1 lose nothing: smaller ones would only need larger heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from ..construction.problem import SparseParity


@dataclass(frozen=True)
class HeadTraining:
    """Adam on the mean hinge loss over every task and pattern plus ``decay`` times the squared norm."""

    heads: int
    steps: int
    starts: int
    rate: float = 0.05
    decay: float = 1e-3

    def __post_init__(self) -> None:
        if self.heads < 2 or self.heads % 2:
            raise ValueError(f"{self.heads} heads: half of them are negative, so their number is even and positive")

    @property
    def signs(self) -> Tensor:
        half = self.heads // 2
        return torch.tensor([-1.0] * half + [1.0] * half)

    def train(self, problem: SparseParity, seeds: Seeds) -> Tensor:
        """Diagonals v (seeds, starts, heads, d) after training; the rate falls linearly to zero."""
        diagonals = 0.5 * seeds.normal("initial heads", self.starts, self.heads, problem.dim)
        diagonals.requires_grad_(True)
        optimiser = torch.optim.Adam([diagonals], lr=self.rate)
        rows, labels, weights = patterns(problem, seeds)
        for step in range(self.steps):
            optimiser.param_groups[0]["lr"] = self.rate * (1 - step / self.steps)
            found = margins(diagonals, self.signs.to(diagonals), rows, labels)
            hinge = ((1 - found).clamp(min=0) * weights).sum(-1)
            penalty = self.decay * diagonals.square().sum((-2, -1))
            optimiser.zero_grad()
            (hinge + penalty).sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return diagonals.detach()


def patterns(problem: SparseParity, seeds: Seeds) -> tuple[Tensor, Tensor, Tensor]:
    """Every unordered task with every pattern: rows (n, d) of z ⊙ φ in units of 2γ, labels (n,), probabilities (n,)."""
    tasks = problem.tasks("all")
    tasks = tasks[tasks[:, 0] < tasks[:, 1]]
    phi, labels = problem.queries(tasks)
    rows = problem.reads(tasks).unsqueeze(1) * phi / (2 * problem.gamma)
    inside = (tasks < problem.important).all(1)
    common, rare = inside.sum(), (~inside).sum()
    chance = torch.where(inside, (1 - problem.rare) / common, problem.rare / rare.clamp(min=1))
    weights = (chance.unsqueeze(1) * problem.probabilities).flatten()
    placed = (rows.flatten(0, 1), labels.repeat(len(tasks)), weights)
    first, second, third = (each.to(seeds.device, seeds.dtype) for each in placed)
    return first, second, third


def margins(diagonals: Tensor, signs: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    """y·g (..., n) of heads with diagonals (..., heads, d)."""
    fired = torch.relu(diagonals @ rows.T)
    return (signs.unsqueeze(-1) * fired).sum(-2) * labels
