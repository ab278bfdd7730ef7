"""The general family of problems, for which the source constructs a good network as well."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from ..problem import orthonormal


@dataclass(frozen=True)
class GeneralProblem:
    """The general family: unit patterns of bounded coherence, noise ζ ~ N(0, σ_ζ² I), imbalanced classes, and a
    background that may be dependent and unequal (here: pairs that copy each other with probability ``tie``)."""

    dim: int
    patterns: int
    relevant: int
    positive: tuple[int, ...]
    rate: float = 0.5
    noise: float = 0.0
    coherence: float = 1.0
    tie: float = 0.0
    background: tuple[float, float] = (0.3, 0.5)

    def __post_init__(self) -> None:
        if not 1 <= self.relevant <= self.patterns:
            raise ValueError(f"{self.relevant} relevant of {self.patterns} patterns: there must be 1 ≤ k ≤ D")
        if not 0 <= self.tie <= 1 or self.noise < 0 or self.coherence <= 0:
            raise ValueError("tie must lie in [0, 1], noise at or above 0, coherence above 0")

    def dictionary(self, seeds: Seeds) -> Tensor:
        """Unit columns with |⟨M_i, M_j⟩| ≤ coherence/√d: (seeds, dim, patterns)."""
        return seeds.draw("dictionary", self._incoherent)

    def _incoherent(self, generator: torch.Generator) -> Tensor:
        # A Gaussian dictionary shrunk towards an orthonormal one until the bound holds.
        if self.patterns > self.dim:
            raise ValueError(f"{self.patterns} patterns of bounded coherence are built in at least as many dimensions")
        base = orthonormal(self.dim, self.patterns, generator=generator)
        tilt = torch.randn(self.dim, self.patterns, generator=generator, dtype=torch.float64) / math.sqrt(self.dim)
        share = 1.0
        while True:
            mixed: Tensor = base + share * tilt
            mixed = mixed / mixed.norm(dim=0)
            overlap = (mixed.mT @ mixed - torch.eye(self.patterns, dtype=torch.float64)).abs().max()
            if overlap <= self.coherence / math.sqrt(self.dim):
                return mixed
            share *= 0.8

    def rates(self) -> Tensor:
        low, high = self.background
        return torch.cat(
            [torch.full((self.relevant,), self.rate), torch.linspace(low, high, self.patterns - self.relevant)]
        )

    def class_statistics(self) -> tuple[float, float, float]:
        """(p_min, γ₊, γ₋): the rarer class's share and E[yφ̃_i | y = v] of a relevant pattern, by the binomial law."""
        k = self.relevant
        law = [math.comb(k, c) * self.rate**c * (1 - self.rate) ** (k - c) for c in range(k + 1)]
        shares = {v: sum(law[c] for c in range(k + 1) if (c in self.positive) == (v > 0)) for v in (1, -1)}
        means = {v: sum(law[c] * c / k for c in range(k + 1) if (c in self.positive) == (v > 0)) for v in (1, -1)}
        if min(shares.values()) == 0:
            raise ValueError("one class is empty, so it has no statistics")
        return min(shares.values()), means[1] / shares[1], -means[-1] / shares[-1]

    @property
    def gamma(self) -> float:
        """γ = (γ₊ + γ₋)/2: half the gap between the classes' means."""
        _, positive, negative = self.class_statistics()
        return (positive + negative) / 2

    @property
    def scale(self) -> float:
        rates = self.rates().double()
        return math.sqrt(float((rates * (1 - rates)).sum()) + self.dim * self.noise**2)

    def sample(self, seeds: Seeds, name: str, n: int) -> tuple[Tensor, Tensor]:
        binary = seeds.draw(f"{name} patterns", lambda g: self._patterns(g, n))
        table = torch.full((self.relevant + 1,), -1.0, device=seeds.device, dtype=seeds.dtype)
        table[list(self.positive)] = 1.0
        labels = table[binary[..., : self.relevant].sum(-1).long()]
        centred = (binary - self.rates().to(binary)) / self.scale
        noise = seeds.normal(f"{name} noise", n, self.dim) * (self.noise / self.scale)
        return centred @ self.dictionary(seeds).mT + noise, labels

    def _patterns(self, generator: torch.Generator, n: int) -> Tensor:
        rates = self.rates()
        uniform = torch.rand(n, self.patterns, generator=generator)
        tied = torch.rand(n, self.patterns, generator=generator) < self.tie
        # A background pattern that copies its neighbour's uniform keeps its own rate and loses independence.
        shifted = torch.cat([uniform[:, : self.relevant + 1], uniform[:, self.relevant : -1]], 1)
        tied[:, : self.relevant + 1] = False
        return (torch.where(tied, shifted, uniform) < rates).float()

    def truth(self, seeds: Seeds) -> Tensor:
        return self.dictionary(seeds)[..., : self.relevant].sum(-1).unsqueeze(1)
