"""An ensemble's seeds: every seed owns its named random streams."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


def stream(seed: int, name: str) -> torch.Generator:
    """The generator of one seed's stream ``name``; streams of other names or seeds are unrelated to it."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


@dataclass(frozen=True)
class Seeds(Sequence[int]):
    """Seeds that train together. Draws are made on the CPU, one seed at a time, so that a seed's draws never
    depend on its company or on the device; the results are stacked with a leading seed axis."""

    values: tuple[int, ...]
    device: str = "cpu"
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("an ensemble needs at least one seed")

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[int]:
        return iter(self.values)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.values[index]

    def draw(self, name: str, sample: Callable[[torch.Generator], Tensor]) -> Tensor:
        """Stack ``sample(generator)`` over the seeds: shape (seeds, ...). Floats take the ensemble's dtype."""
        drawn = torch.stack([sample(stream(seed, name)) for seed in self.values])
        dtype = self.dtype if drawn.is_floating_point() else drawn.dtype
        return drawn.to(self.device, dtype)

    def normal(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Standard normal draws of shape (seeds, *shape). The draw is always made in float32 unless ``dtype``
        asks for more, so that float64 and float32 runs of a seed start from the same numbers."""
        return self.draw(name, lambda g: torch.randn(*shape, generator=g, dtype=dtype or torch.float32))

    def uniform(self, name: str, *shape: int) -> Tensor:
        return self.draw(name, lambda g: torch.rand(*shape, generator=g))

    def permutation(self, name: str, n: int) -> Tensor:
        return self.draw(name, lambda g: torch.randperm(n, generator=g))

    def batches(self, name: str, n: int, batch: int, steps: int, *, start: int = 0) -> Iterator[Tensor]:
        """``steps`` index tensors of shape (seeds, batch): epochs of shuffled indices, each seed with its own order.
        With ``start`` the first so many are left out, for a unit that goes on from a checkpoint."""
        if batch > n:
            raise ValueError(f"a batch of {batch} cannot be drawn from {n} samples")
        generators = [stream(seed, name) for seed in self.values]
        order, at = None, n
        for step in range(steps):
            if order is None or at + batch > n:
                order = torch.stack([torch.randperm(n, generator=g) for g in generators]).to(self.device)
                at = 0
            if step >= start:
                yield order[:, at : at + batch]
            at += batch
