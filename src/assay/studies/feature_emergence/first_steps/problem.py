"""Labels of hidden codes, which no count of patterns tells."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from assay.training.seeds import Seeds, stream


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
