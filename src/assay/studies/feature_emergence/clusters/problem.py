"""Gaussian clusters on the vertices of a cube."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from ..problem import orthonormal

# Dimension, factors and noise of the mixtures that the source trains on.
MIXTURES = {"100-4": (100, 4, 1.0), "25-4": (25, 4, 0.7), "100-5": (100, 5, 1.0)}


@dataclass(frozen=True)
class GaussianMixture:
    """Clusters on the 2^k vertices Σ ±M_i with Gaussian noise; the label is the product of the signs."""

    dim: int
    factors: int
    noise: float

    def __post_init__(self) -> None:
        if not 1 <= self.factors <= self.dim:
            raise ValueError(f"{self.factors} orthonormal factors do not fit into {self.dim} dimensions")
        if self.noise < 0:
            raise ValueError(f"a noise of {self.noise} is not possible")

    def directions(self, seeds: Seeds) -> Tensor:
        return seeds.draw("dictionary", lambda g: orthonormal(self.dim, self.factors, generator=g))

    def truth(self, seeds: Seeds) -> Tensor:
        """The cluster centres (seeds, 2^k, dim)."""
        signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * self.factors).reshape(-1, self.factors)
        return torch.einsum("cf,sdf->scd", signs.to(seeds.device, seeds.dtype), self.directions(seeds))

    def sample(self, seeds: Seeds, name: str, n: int) -> tuple[Tensor, Tensor]:
        signs = seeds.draw(f"{name} signs", lambda g: torch.randint(0, 2, (n, self.factors), generator=g) * 2 - 1)
        noise = seeds.normal(f"{name} noise", n, self.dim) * (self.noise * math.sqrt(self.factors / self.dim))
        signs = signs.to(seeds.dtype)
        return signs @ self.directions(seeds).mT + noise, signs.prod(-1)
