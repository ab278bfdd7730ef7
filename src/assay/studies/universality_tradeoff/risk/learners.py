"""Linear predictors on a representation: least squares under a norm bound, solved exactly."""

from __future__ import annotations

import torch
from torch import Tensor


def bounded_least_squares(features: Tensor, labels: Tensor, radius: float) -> Tensor:
    """min ‖Φu − y‖² over ‖u‖ ≤ ``radius``, for features (..., m, k) and labels (..., m): the smallest minimiser where
    it fits, else ridge regression with the penalty that brings the norm to the radius, by bisection."""
    left, sizes, right = torch.linalg.svd(features, full_matrices=False)
    along = (left.mT @ labels.unsqueeze(-1)).squeeze(-1)  # (..., rank)
    real = sizes > 1e-10 * sizes.amax(-1, keepdim=True)

    def shrunk(penalty: Tensor) -> Tensor:
        return torch.where(real, sizes * along / (sizes.square() + penalty), torch.zeros_like(along))

    low = torch.zeros_like(sizes[..., :1])
    high = sizes.square().amax(-1, keepdim=True) * along.norm(dim=-1, keepdim=True) / radius
    high = high.clamp(min=1e-300) + sizes.amax(-1, keepdim=True) * along.norm(dim=-1, keepdim=True) / radius
    fits = shrunk(low).norm(dim=-1, keepdim=True) <= radius * (1 + 1e-9)
    for _ in range(80):
        middle = (low + high) / 2
        outside = shrunk(middle).norm(dim=-1, keepdim=True) > radius
        low, high = torch.where(outside, middle, low), torch.where(outside, high, middle)
    coefficients = torch.where(fits, shrunk(torch.zeros_like(low)), shrunk(high))
    found: Tensor = (right.mT @ coefficients.unsqueeze(-1)).squeeze(-1)
    return found
