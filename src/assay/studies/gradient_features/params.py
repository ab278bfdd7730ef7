"""Parameters that several experiments read."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from assay import lab


class Testing(lab.Params):
    test_samples: int = Field(4000, ge=100, description="test inputs of each seed")


class FirstStep(lab.Params):
    threshold: float = Field(1.0, gt=0, description="initial threshold c in units of the noise before it")
    cone: float = Field(0.1, gt=0, lt=1, description="width γ of the cones around features")


def check_growing(name: str, values: Sequence[float]) -> None:
    """Refuse the values of a grid unless they grow."""
    if not values or list(values) != sorted(set(values)):
        raise ValueError(f"{name} needs values that grow, not {values}")
