"""Polynomials of a few directions of a Gaussian input, written in Hermite polynomials so that the variance is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.methods.gradient_bounds import Assumption
from assay.training.seeds import Seeds

from ..problem import Sample


@dataclass(frozen=True)
class MultiIndex:
    """y = a·q_2 + √(1 − a²)·q_3 with q_2 ∝ Σ_i c_i(z_i² − 1) and q_3 = z_1z_2z_3, both of variance 1, where z are the
    first coordinates. Without the quadratic part the mean Hessian is 0: no gradient features."""

    dim: int
    curvatures: tuple[float, float, float] = (1.0, 1.0, 1.0)  # c
    quadratic: float = 0.8  # a
    strict: bool = True  # refuse a mean Hessian that does not see all three directions

    def __post_init__(self) -> None:
        if self.dim < 4:
            raise ValueError(f"a polynomial of three directions needs 4 dimensions or more, not {self.dim}")
        if not 0 <= self.quadratic <= 1:
            raise ValueError(f"the weight of the quadratic part lies between 0 and 1, and {self.quadratic:g} does not")
        if self.strict and (self.quadratic == 0 or 0 in self.curvatures):
            raise ValueError("the mean Hessian is rank deficient: gradients do not see all directions")

    @property
    def features(self) -> Tensor:
        """(3, dim): the relevant directions."""
        return torch.eye(3, self.dim)

    @property
    def hessian(self) -> Tensor:
        """H = E∇²g* (dim, dim)."""
        c = torch.tensor(self.curvatures, dtype=torch.float64)
        found = torch.zeros(self.dim, self.dim, dtype=torch.float64)
        found.diagonal()[:3] = self.quadratic * 2 * c / math.sqrt(2 * float(c @ c))
        return found

    def target(self, inputs: Tensor) -> Tensor:
        z = inputs[..., :3]
        c = torch.tensor(self.curvatures).to(z)
        second = (z.square() - 1) @ c / math.sqrt(2 * float(c @ c))
        found: Tensor = self.quadratic * second + math.sqrt(1 - self.quadratic**2) * z.prod(-1)
        return found

    def sample(self, seeds: Seeds, name: str, n: int) -> Sample:
        inputs = seeds.normal(name, n, self.dim)
        return Sample(inputs, self.target(inputs), torch.zeros(inputs.shape[:2], dtype=torch.long))

    def assumptions(self) -> tuple[Assumption, ...]:
        seen = int((self.hessian.diagonal() != 0).sum())
        least = float(self.hessian.diagonal()[:3].abs().min())
        kappa = math.inf if least == 0 else 1 / least / math.sqrt(3)
        return (
            Assumption("rank of the mean Hessian", seen, low=3, high=3),
            Assumption("dimension d", self.dim, low=kappa * 3**1.5),
        )
