"""Errors on the inputs of each component of a mixture."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..problem import Sample


def component_errors(outputs: Tensor, sample: Sample, components: int) -> tuple[Tensor, Tensor]:
    """Share of wrong signs of outputs (seeds, n) among the inputs of each component, and the number of these: (seeds,
    components) both. An output of 0 is wrong; a share is NaN where an output of that seed is not finite, or where there
    is no input."""
    wrong = (outputs * sample.labels <= 0).double()
    known = torch.where(outputs.isfinite().all(1), 1.0, math.nan).double()
    own = torch.stack([sample.components == j for j in range(components)], 1).double()  # (seeds, components, n)
    counts = own.sum(-1)
    return (own @ wrong.unsqueeze(-1)).squeeze(-1) / counts * known.unsqueeze(1), counts.long()
