"""The optimal learner of the proofs, and the pseudo-loss on which gradient descent competes with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor


def optimal_learner(alpha: Tensor, lucky: Tensor, tau: float, kappa: float) -> Tensor:
    """θ*_i = (√τ κ/|𝓜*_j|) sign(α_ij) M_j for i ∈ 𝓜*_j, else 0, in dictionary coordinates: (..., neurons, features)."""
    members = lucky.sum(-2, keepdim=True).clamp(min=1)
    return math.sqrt(tau) * kappa * alpha.sign() * lucky / members


@dataclass(frozen=True)
class Frozen:
    """f_{t,θ}: the network with the activation pattern and biases of w⁽ᵗ⁾ and free weights θ, so affine in θ.

    ``attended`` (batch, tokens, dim), ``pattern`` (batch, tokens, neurons) is 1{|s| ≥ b}, ``offsets`` b sign(s) on it.
    """

    attended: Tensor
    pattern: Tensor
    offsets: Tensor
    multiplicity: int

    @classmethod
    def at(cls, w: Tensor, b: Tensor, attended: Tensor, multiplicity: int) -> Frozen:
        s = attended @ w.mT
        pattern = (s.abs() >= b).to(s.dtype)
        return cls(attended, pattern, pattern * b * s.sign(), multiplicity)

    def __call__(self, theta: Tensor) -> Tensor:
        return self.multiplicity * (self.pattern * (self.attended @ theta.mT) - self.offsets).sum(-2)


def pseudo_loss(theta: Tensor, frozen: Frozen, candidates: Tensor, tau: float) -> Tensor:
    """L̃(f_{t,θ}, f_t) = E[−τ log softmax] with the candidates' outputs f_t(Y) held fixed: convex in θ, and at θ = w⁽ᵗ⁾
    its value and gradient are τ times those of the loss."""
    logits = frozen(theta) @ candidates.mT / tau
    return tau * (logits.logsumexp(-1) - logits.diagonal()).mean()
