"""What the proof of the pruning theorem says of one step: what a mask does to the softmax, and the printed rates."""

from __future__ import annotations

from torch import Tensor


def first_order_response(softmax: Tensor, change: Tensor, tau: float) -> Tensor:
    """Δℓ'_p ≈ (1/τ) ℓ'_p [(1 − ℓ'_p)Δu_p − Σ_s ℓ'_s Δu_s]: what a change of all similarities does to the positives'
    softmax: P and Δu (..., anchors, candidates), positives on the diagonal → (..., anchors)."""
    p = softmax.diagonal(dim1=-2, dim2=-1)
    return p / tau * (change.diagonal(dim1=-2, dim2=-1) - (softmax * change).sum(-1))


def printed_rates(epsilon: float, alpha: float, d: int, eta: float, strength: float) -> tuple[float, float]:
    """Theorem 3.2's growth per step along M_{j*} and, at most, along other features: ηε²αC/d and ηε³αC/d² with
    C = C_z log log d, up to constants. Their ratio is ε/d."""
    return eta * epsilon**2 * alpha * strength / d, eta * epsilon**3 * alpha * strength / d**2
