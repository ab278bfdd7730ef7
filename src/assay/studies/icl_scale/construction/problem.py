"""In-context 2-sparse parity: which two of d hidden signs are multiplied is the task, and examples show it.

The features are known: the d hidden signs φ. A task (i, j) among the k important ones is common, any other rare.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

# The signs of (φᵢ, φⱼ) in an example; their product is the label.
PATTERNS = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
TASK_SETS = ("important", "rare", "all", "alike")


@dataclass(frozen=True)
class SparseParity:
    """d = 2^bits hidden signs, of which k = 2^important_bits are important. The pair of a task is (1, 1) with
    probability ¼ + γ and (−1, −1) with ¼ − γ, which is all that tells the task; other signs are fair."""

    bits: int
    important_bits: int
    gamma: float = 0.2
    rare: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.important_bits <= self.bits:
            raise ValueError(f"{self.important_bits} bits of the important signs: at least 1, at most {self.bits}")
        if not 0 < self.gamma < 0.25:
            raise ValueError(f"γ = {self.gamma} must lie between 0 and 1/4")
        if not 0 <= self.rare < 0.5:
            raise ValueError(f"rare tasks have a probability from 0 to below 1/2, not {self.rare}")
        if self.rare > 0 and self.important_bits == self.bits:
            raise ValueError("with all signs important there are no rare tasks")

    @property
    def dim(self) -> int:
        return int(2**self.bits)

    @property
    def important(self) -> int:
        return int(2**self.important_bits)

    @property
    def probabilities(self) -> Tensor:
        """Of the four patterns (4,)."""
        return torch.tensor([0.25 + self.gamma, 0.25, 0.25, 0.25 - self.gamma], dtype=torch.float64)

    def tasks(self, which: str) -> Tensor:
        """Ordered pairs (tasks, 2), from 0: ``important`` ones, all others (``rare``), ``all``, or those rare ones that
        are ``alike`` in the lowest important_bits bits."""
        first, second = torch.meshgrid(torch.arange(self.dim), torch.arange(self.dim), indexing="ij")
        pairs = torch.stack([first.flatten(), second.flatten()], 1)
        inside = (pairs < self.important).all(1)
        chosen = {
            "important": inside,
            "rare": ~inside,
            "all": torch.ones_like(inside),
            "alike": pairs[:, 0] % self.important == pairs[:, 1] % self.important,
        }
        if which not in chosen:
            raise ValueError(f"unknown tasks '{which}' (allowed: {', '.join(TASK_SETS)})")
        found: Tensor = pairs[chosen[which] & (pairs[:, 0] != pairs[:, 1])]
        return found

    def reads(self, tasks: Tensor) -> Tensor:
        """E[yφ] = 2γ(eᵢ + eⱼ) (tasks, d): what the examples of a long prompt say."""
        eye = torch.eye(self.dim, dtype=torch.float64)
        return 2 * self.gamma * (eye[tasks[..., 0]] + eye[tasks[..., 1]])

    def queries(self, tasks: Tensor) -> tuple[Tensor, Tensor]:
        """Every pattern of every task: φ (tasks, 4, d), with +1 outside the pair, and labels (4,)."""
        signs = torch.ones(len(tasks), 4, self.dim, dtype=torch.float64)
        for side in (0, 1):
            signs.scatter_(
                2, tasks[:, side].view(-1, 1, 1).expand(-1, 4, 1), PATTERNS[:, side].expand(len(tasks), 4)[..., None]
            )
        return signs, PATTERNS.prod(1)

    def examples(self, seeds: Seeds, name: str, tasks: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Examples of tasks (seeds, prompts, 2): φ (seeds, prompts, count, d) and labels (seeds, prompts, count)."""
        prompts = tasks.shape[1]
        signs = seeds.uniform(f"{name}, other signs", prompts, count, self.dim) < 0.5
        signs = torch.where(signs, 1.0, -1.0).to(seeds.dtype)
        bounds = self.probabilities.cumsum(0)[:-1].to(seeds.device, seeds.dtype)
        drawn = torch.bucketize(seeds.uniform(f"{name}, pairs", prompts, count), bounds)
        pair = PATTERNS.to(seeds.device, seeds.dtype)[drawn]
        at = tasks.unsqueeze(2).expand(-1, -1, count, -1)
        return signs.scatter(3, at, pair), pair.prod(-1)


def low_bits_apart(tasks: Tensor, bits: int) -> Tensor:
    """H (tasks,): in how many of the lowest bits the two indices of a task differ."""
    powers = 2 ** torch.arange(bits)
    apart: Tensor = ((tasks[:, :1] // powers) % 2 != (tasks[:, 1:] // powers) % 2).sum(1)
    return apart
