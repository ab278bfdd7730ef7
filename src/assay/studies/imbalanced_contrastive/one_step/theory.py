"""What the proof of the pruning theorem says of one step: what a mask does to the softmax."""

from __future__ import annotations

from torch import Tensor


def first_order_response(softmax: Tensor, change: Tensor, tau: float) -> Tensor:
    """Δℓ'_p ≈ (1/τ) ℓ'_p [(1 − ℓ'_p)Δu_p − Σ_s ℓ'_s Δu_s]: what a change of all similarities does to the positives'
    softmax: P and Δu (..., anchors, candidates), positives on the diagonal → (..., anchors)."""
    p = softmax.diagonal(dim1=-2, dim2=-1)
    return p / tau * (change.diagonal(dim1=-2, dim2=-1) - (softmax * change).sum(-1))
