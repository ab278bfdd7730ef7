"""The task's exact answer from one example."""

from __future__ import annotations

from torch import Tensor


def one_example(X: Tensor, y: Tensor, alpha: float) -> Tensor:
    """q = αx/y of the one example with the largest |y|: ⟨q, θ*⟩ = α exactly, whatever θ* is: (..., d)."""
    best = y.abs().argmax(-1, keepdim=True)
    return alpha * X.take_along_dim(best.unsqueeze(-1), -2).squeeze(-2) / y.take_along_dim(best, -1)
