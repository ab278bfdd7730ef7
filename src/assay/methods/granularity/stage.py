"""One stage of training by its learning-rate schedule, and what it means that a stage has no result."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from assay.methods._checks import check_fields, limits


class Diverged(ValueError):
    """A stage whose loss, weights or logits are not finite has no result."""


@dataclass(frozen=True)
class Stage:
    """SGD with momentum: a linear warm-up over a share of the steps, then a cosine to zero."""

    epochs: int = field(default=10, metadata=limits(least=1))
    batch: int = field(default=128, metadata=limits(least=1))
    rate: float = field(default=0.05, metadata=limits(above=0))
    momentum: float = field(default=0.9, metadata=limits(least=0, below=1))
    decay: float = field(default=5e-4, metadata=limits(least=0))
    warmup: float = field(default=0.1, metadata=limits(least=0, below=1))

    def __post_init__(self) -> None:
        check_fields(self)

    def share(self, step: int, steps: int) -> float:
        """The rate at a step as a share of the stage's rate."""
        rising = self.warmup * steps
        if step < rising:
            return (step + 1) / rising if rising >= 1 else 1.0
        return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1.0, steps - rising)))
