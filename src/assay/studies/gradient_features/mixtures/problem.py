"""Mixtures of Gaussians whose components have noise of different sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.methods.gradient_bounds import Assumption
from assay.training.seeds import Seeds

from ..problem import GaussianMixture, Sample


@dataclass(frozen=True, eq=False)
class UnequalSpread:
    """Components N(μ_j, σ_j²·I): a mixture with the largest deviation σ_B, and those of its components."""

    mixture: GaussianMixture
    deviations: Tensor  # (components,)

    def __post_init__(self) -> None:
        if self.deviations.shape != self.mixture.weights.shape:
            raise ValueError(f"{len(self.mixture.weights)} components have as many deviations, not {self.deviations}")
        if not bool((self.deviations > 0).all()):
            raise ValueError(f"every component needs a deviation above 0, and {float(self.deviations.min()):g} is not")
        largest = float(self.deviations.max())
        if abs(largest - self.mixture.deviation) > 1e-6 * largest:
            raise ValueError(f"the mixture's own deviation is the largest, {largest:g}, not {self.mixture.deviation:g}")

    @classmethod
    def xor(cls, dim: int, deviation: float, ratio: float) -> UnequalSpread:
        """The XOR mixture with the given noise on its second axis and ``ratio`` times as much on its first."""
        first = torch.tensor([ratio, ratio, 1.0, 1.0])
        return cls(GaussianMixture.xor(dim, deviation * max(1.0, ratio)), deviation * first)

    @property
    def dim(self) -> int:
        return self.mixture.dim

    @property
    def features(self) -> Tensor:
        """(features, dim): those of the mixture, whatever the noise."""
        return self.mixture.features

    @property
    def typical_norm(self) -> float:
        """√E‖x‖²."""
        sizes = self.mixture.means.square().sum(1) + self.dim * self.deviations.square()
        return math.sqrt(float(self.mixture.weights @ sizes))

    def sample(self, seeds: Seeds, name: str, n: int) -> Sample:
        drawn = self.mixture.sample(seeds, name, n)
        means = self.mixture.means.to(drawn.inputs)[drawn.components]
        scale = (self.deviations / self.mixture.deviation).to(drawn.inputs)[drawn.components]
        return Sample(means + scale.unsqueeze(-1) * (drawn.inputs - means), drawn.labels, drawn.components)

    def assumptions(self, tau: float = 8.0) -> tuple[Assumption, ...]:
        """Those of the mixture: the theory knows the largest deviation alone."""
        return self.mixture.assumptions(tau)
