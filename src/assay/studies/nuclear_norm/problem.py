"""Features that go with the label everywhere, and features that go with it in the training domains only."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds


@dataclass(frozen=True)
class Environments:
    """Label times features, z = y·z̃ (samples, d), with independent coordinates. The first ``invariant`` are uniform on
    [0, 1] in every domain. The others have a uniform magnitude and agree with the label with probability ½ + γ in the
    training domain and ½ − γ outside. With one feature of each kind this is the two-dimensional task."""

    dim: int
    invariant: int
    gamma: float

    def __post_init__(self) -> None:
        if not 1 <= self.invariant < self.dim:
            raise ValueError(f"of {self.dim} features at least 1 and not all are invariant, not {self.invariant}")
        if not -0.5 < self.gamma < 0.5:
            raise ValueError(f"γ lies between -1/2 and 1/2, not at {self.gamma}")

    @property
    def environmental(self) -> int:
        return self.dim - self.invariant

    @property
    def means(self) -> Tensor:
        """E z in the training domain, (d,)."""
        return torch.tensor([0.5] * self.invariant + [self.gamma] * self.environmental, dtype=torch.float64)

    @property
    def second_moments(self) -> Tensor:
        """E z zᵀ, (d, d)."""
        variances = torch.tensor(
            [1 / 12] * self.invariant + [1 / 3 - self.gamma**2] * self.environmental, dtype=torch.float64
        )
        return torch.diag(variances) + torch.outer(self.means, self.means)

    def sample(self, seeds: Seeds, name: str, samples: int, *, outside: bool = False) -> Tensor:
        """z of shape (seeds, samples, d), in the training domain or outside."""
        agree = 0.5 - self.gamma if outside else 0.5 + self.gamma
        z = seeds.uniform(f"{name}: magnitudes", samples, self.dim)
        against = seeds.uniform(f"{name}: signs", samples, self.environmental) >= agree
        z[..., self.invariant :] *= 1 - 2 * against.to(z.dtype)
        return z
