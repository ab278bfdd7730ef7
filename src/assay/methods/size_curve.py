"""How large must a teacher be? Test loss over model size, and the bottom of its classical U."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, curves
from assay.probes.intervals import mean_interval

from ._checks import all_finite


@dataclass(frozen=True)
class FirstMinimum:
    """Where the classical U has its bottom; ``size`` is None when it has none inside, and ``reason`` says why."""

    size: int | None
    reason: str


def first_local_minimum(
    sizes: Sequence[int], losses: Sequence[float] | Tensor, *, tolerance: float = 0.0
) -> FirstMinimum:
    """The first interior local minimum of test loss over size, the second descent ignored. ``losses`` is (sizes,) or
    (sizes, seeds), then averaged over seeds. A rise counts once it exceeds ``tolerance`` above the lowest so far."""
    values = torch.as_tensor(losses, dtype=torch.float64)
    values = values.mean(dim=1) if values.dim() == 2 else values
    if len(sizes) < 3 or len(values) != len(sizes) or list(sizes) != sorted(set(sizes)):
        raise ValueError("a U-curve needs at least 3 sizes that grow strictly, with one loss or row of losses for each")
    all_finite("the losses of a U-curve", values)
    best = 0
    for i in range(1, len(sizes)):
        if values[i] < values[best]:
            best = i
        elif values[i] > values[best] + tolerance:
            if best == 0:
                return FirstMinimum(None, f"no interior minimum: the loss rises from the smallest size, {sizes[0]}, on")
            return FirstMinimum(sizes[best], f"the loss falls up to size {sizes[best]} and rises at {sizes[i]}")
    return FirstMinimum(None, f"no interior minimum: the loss does not rise up to the largest size, {sizes[-1]}")


@dataclass(frozen=True, repr=False)
class SizeCurve(Report):
    """Test loss (sizes, seeds) and the first local minimum of its mean."""

    sizes: tuple[int, ...]
    losses: Tensor
    minimum: FirstMinimum

    def headline(self) -> str:
        return f"teacher size {self.minimum.size}: {self.minimum.reason}"

    def table(self) -> list[dict[str, Any]]:
        """A row per size, over the seeds."""
        found = [mean_interval(row.tolist()) for row in self.losses]
        return [
            {"size": size, "loss": at.estimate, "low": at.low, "high": at.high}
            for size, at in zip(self.sizes, found, strict=True)
        ]

    def figure(self) -> Any:
        """The U-curve of the mean test loss."""
        return curves(self.table(), "size", "loss", loss="test loss")
