"""In-context linear regression: prompts of examples (x, ⟨w, x⟩) and a query, with tokens of any covariance.

The features are known: the eigenvectors of the covariance, each as important as its eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from assay.training.seeds import Seeds


@dataclass(frozen=True)
class Prompts:
    """Sampled prompts: inputs (seeds, prompts, n, d), labels (seeds, prompts, n), queries (seeds, prompts, d) and
    their targets (seeds, prompts), which carry no noise."""

    inputs: Tensor
    labels: Tensor
    queries: Tensor
    targets: Tensor

    def gram(self) -> Tensor:
        """EEᵀ/ρ (seeds, prompts, d+1, d+1). E has a column (x, y) per example and one (query, 0); ρ counts the
        examples alone."""
        rows = torch.cat([self.inputs, self.labels.unsqueeze(-1)], -1)
        query = torch.cat([self.queries, torch.zeros_like(self.targets).unsqueeze(-1)], -1)
        return (rows.mT @ rows + query.unsqueeze(-1) * query.unsqueeze(-2)) / rows.shape[-2]

    def noisy(self, deviations: Tensor, sigma: float) -> Prompts:
        """The same prompts with σ times standard normal deviations (seeds, prompts, n) added to the labels."""
        if sigma < 0:
            raise ValueError(f"the deviation of label noise is {sigma}, and cannot be negative")
        return replace(self, labels=self.labels + sigma * deviations)

    def flipped(self, order: Tensor, share: float) -> Prompts:
        """The same prompts with the labels of the first ``share`` of the examples in ``order`` (seeds, prompts, n)
        negated: a larger share flips the same examples and more."""
        if not 0 <= share <= 1:
            raise ValueError(f"a share of {share} of the labels cannot be flipped: it lies between 0 and 1")
        wrong = order < round(share * order.shape[-1])
        return replace(self, labels=torch.where(wrong, -self.labels, self.labels))


@dataclass(frozen=True)
class InContextRegression:
    """Tokens x ~ N(0, QDQᵀ) with ``eigenvalues`` D in descending order, zeros included, and each seed's own rotation Q
    of the features."""

    eigenvalues: tuple[float, ...]

    def __post_init__(self) -> None:
        values = torch.tensor(self.eigenvalues)
        if len(values) < 1 or not bool(torch.isfinite(values).all()) or bool((values < 0).any()) or values[0] == 0:
            raise ValueError(f"eigenvalues {self.eigenvalues} must be finite, none negative and the first positive")
        if bool((values.diff() > 0).any()):
            raise ValueError(f"eigenvalues {self.eigenvalues} must come in descending order")

    @property
    def dim(self) -> int:
        return len(self.eigenvalues)

    def spectrum(self, seeds: Seeds) -> Tensor:
        """D (d,)."""
        return torch.tensor(self.eigenvalues, device=seeds.device, dtype=seeds.dtype)

    def features(self, seeds: Seeds) -> Tensor:
        """Q (seeds, d, d): the features are its columns, the most important first."""
        drawn = seeds.normal("rotation of the features", self.dim, self.dim, dtype=torch.float64)
        columns, upper = torch.linalg.qr(drawn)
        turned: Tensor = columns * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
        return turned

    def covariance(self, seeds: Seeds) -> Tensor:
        """Λ = QDQᵀ (seeds, d, d)."""
        features = self.features(seeds)
        return (features * self.spectrum(seeds)) @ features.mT

    def tokens(self, seeds: Seeds, name: str, *shape: int) -> Tensor:
        """x = QD^{1/2}g (seeds, *shape, d), which needs no inverse: singular covariances are as good as others."""
        normal = seeds.normal(name, *shape, self.dim)
        root = self.features(seeds) * self.spectrum(seeds).sqrt()
        return (normal.reshape(len(seeds), -1, self.dim) @ root.mT).reshape(normal.shape)

    def sample(self, seeds: Seeds, name: str, prompts: int, examples: int, weights: Tensor | None = None) -> Prompts:
        """Prompts without label noise, each with its own task w ~ N(0, I), or all with ``weights`` (seeds, d)."""
        if examples < 1:
            raise ValueError(f"a prompt needs at least one example, not {examples}")
        drawn = self.tokens(seeds, name, prompts, examples + 1)
        if weights is None:
            task = seeds.normal(f"{name}, tasks", prompts, self.dim)
        else:
            task = weights.unsqueeze(1).expand(-1, prompts, -1)
        answers = (drawn @ task.unsqueeze(-1)).squeeze(-1)
        return Prompts(drawn[:, :, :-1], answers[..., :-1], drawn[:, :, -1], answers[..., -1])


def geometric(dim: int, largest: float, smallest: float) -> tuple[float, ...]:
    """Eigenvalues in geometric progression from the largest to the smallest."""
    ratio = (smallest / largest) ** (1 / max(1, dim - 1))
    return tuple(largest * ratio**i for i in range(dim))
