"""Parity of k of d uniform signs, without any structure to lead the way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.methods.gradient_bounds import Assumption
from assay.training.seeds import Seeds

from ..problem import Sample

_CHUNK = 50_000


@dataclass(frozen=True)
class UniformParity:
    """The relevant coordinates A are the first k; the theory has closed forms for even k and odd d."""

    dim: int
    size: int

    def __post_init__(self) -> None:
        if self.size % 2 or self.size < 2:
            raise ValueError(f"the size of a uniform parity is even, and {self.size} is not")
        if self.dim % 2 == 0 or self.dim <= self.size:
            raise ValueError(f"the dimension of a uniform parity is odd and above its size, and {self.dim} is not")

    @property
    def features(self) -> Tensor:
        """(1, dim): 1_A/√k."""
        found = torch.zeros(1, self.dim)
        found[0, : self.size] = 1 / math.sqrt(self.size)
        return found

    def sample(self, seeds: Seeds, name: str, n: int) -> Sample:
        inputs = torch.where(seeds.uniform(name, n, self.dim) < 0.5, -1.0, 1.0).to(seeds.dtype)
        return Sample(inputs, self.labels(inputs), torch.zeros(inputs.shape[:2], dtype=torch.long))

    def stream(self, seeds: Seeds, name: str, n: int) -> Iterator[Sample]:
        """n samples in pieces, for numbers that do not fit into memory at once."""
        for start in range(0, n, _CHUNK):
            yield self.sample(seeds, f"{name} from {start}", min(_CHUNK, n - start))

    def labels(self, inputs: Tensor) -> Tensor:
        return inputs[..., : self.size].prod(-1)

    def assumptions(self) -> tuple[Assumption, ...]:
        return (Assumption("dimension d", self.dim, low=2 * self.size**2),)
