"""The problems beside the main one: hidden codes, a Gaussian mixture on a cube, and the general family."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from assay.training.seeds import Seeds, stream

from .problem import orthonormal


@dataclass(frozen=True)
class CodeProblem:
    """Labels of hidden codes: φ̃_A is one of ``codes`` distinct binary words, half of them labelled +1."""

    patterns: int
    relevant: int
    codes: int = 100
    features: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", self.patterns)
        if self.codes % 2 or self.codes < 2:
            raise ValueError(f"{self.codes} codes cannot be split into two halves")
        if not 1 <= self.relevant < self.patterns:
            raise ValueError(f"{self.relevant} relevant of {self.patterns} patterns: there must be 1 ≤ k < D")
        if self.codes > 2 ** min(self.relevant, 62):
            raise ValueError(f"there are fewer than {self.codes} distinct codes of {self.relevant} bits")

    def words(self, seed: int) -> Tensor:
        """The distinct codes (codes, k); the first half is labelled +1."""
        generator = stream(seed, "codes")
        found: dict[tuple[int, ...], None] = {}
        while len(found) < self.codes:
            found[tuple(torch.randint(0, 2, (self.relevant,), generator=generator).tolist())] = None
        return torch.tensor(list(found), dtype=torch.float32)

    def truth(self, seeds: Seeds) -> Tensor:
        """The direction of E[yx] (seeds, 1, features): half the gap between the classes' mean codes."""
        gaps = []
        for seed in seeds:
            words = self.words(seed)
            half = self.codes // 2
            gap = torch.zeros(self.patterns)
            gap[: self.relevant] = (words[:half].mean(0) - words[half:].mean(0)) / 2
            gaps.append(gap)
        return torch.stack(gaps).unsqueeze(1).to(seeds.device, seeds.dtype)

    def sample(self, seeds: Seeds, name: str, n: int) -> tuple[Tensor, Tensor]:
        inputs, labels = [], []
        for seed in seeds:
            generator, words = stream(seed, name), self.words(seed)
            code = torch.randint(0, self.codes, (n,), generator=generator)
            background = (torch.rand(n, self.patterns - self.relevant, generator=generator) < 0.5).float()
            inputs.append((torch.cat([words[code], background], 1) - self._mean(words)) / self._scale(words))
            labels.append(torch.where(code < self.codes // 2, 1.0, -1.0))
        return torch.stack(inputs).to(seeds.device, seeds.dtype), torch.stack(labels).to(seeds.device, seeds.dtype)

    def _mean(self, words: Tensor) -> Tensor:
        return torch.cat([words.mean(0), torch.full((self.patterns - self.relevant,), 0.5)])

    def _scale(self, words: Tensor) -> float:
        mean = self._mean(words)
        return float((mean * (1 - mean)).sum().sqrt())

    def correlation(self, seeds: Seeds) -> float:
        """A typical γ: the root mean square of the relevant components of E[yx̃] over seeds and patterns."""
        return float(self.truth(seeds)[..., : self.relevant].double().pow(2).mean().sqrt())

    def scale(self, seeds: Seeds) -> float:
        return sum(self._scale(self.words(seed)) for seed in seeds) / len(seeds)


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
            mixed = base + share * tilt
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
