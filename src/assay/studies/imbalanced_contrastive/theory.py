"""What the mathematics predicts, with the source's names: α_ij = ⟨w_i, M_j⟩, q_j rates, κ_j correlations, τ, η, λ.

Formulas that people use before their own trainings come from ``assay.methods.contrastive_planning``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from assay.methods.contrastive_planning import (
    Descent,
    growth_factors,
    learnability_threshold,
    learnable,
    loss_floor,
    neuron_sets,
    pruning_horizon,
    required_width,
    set_thresholds,
    stage_one_steps,
)

from .problem import TokenPairs

__all__ = [
    "Descent",
    "Frozen",
    "first_order_response",
    "growth_factors",
    "learnability_threshold",
    "learnable",
    "loss_floor",
    "lucky_sets",
    "neuron_sets",
    "optimal_learner",
    "ordinary_sets",
    "pair_correlations",
    "positive_similarity",
    "printed_bias",
    "printed_rates",
    "pruning_horizon",
    "pseudo_loss",
    "required_width",
    "set_thresholds",
    "stage_one_steps",
]


def pair_correlations(problem: TokenPairs, rare: list[float] | float) -> Tensor:
    """κ_j = E[(Σ_r z_j)(Σ_s z_j⁺)] = q_j μ² (E|A_j|)²: (cells, features)."""
    return problem.rates(rare) * problem.mean_magnitude**2 * problem.mean_active**2


def printed_bias(d: int) -> float:
    """√(2 log d/d), the bias at T₁ as a share of ‖w_i‖. At d = 9 it is 0.70: more than most neurons' largest share."""
    return math.sqrt(2 * math.log(d) / d)


def ordinary_sets(alpha: Tensor, ratio: float, margin: float) -> Tensor:
    """𝓜_j: α_ij² ≥ c₂ (log d/d) E_i with E_i = ‖Mᵀw_i‖²: (..., neurons, features), boolean."""
    energy = alpha.square().sum(-1, keepdim=True)
    return alpha.square() >= set_thresholds(alpha.shape[-1], ratio, margin)[1] * energy


def lucky_sets(alpha: Tensor, ratio: float, margin: float) -> Tensor:
    """𝓜*_j: α_ij² ≥ c₁ (log d/d) E_i, and every other feature at most c₂ (log d/d) E_i."""
    energy = alpha.square().sum(-1, keepdim=True)
    upper, lower = set_thresholds(alpha.shape[-1], ratio, margin)
    above = alpha.square() > lower * energy
    others = above.sum(-1, keepdim=True) - above.long()
    return (alpha.square() >= upper * energy) & (others == 0)


def first_order_response(softmax: Tensor, change: Tensor, tau: float) -> Tensor:
    """Δℓ'_p ≈ (1/τ) ℓ'_p [(1 − ℓ'_p)Δu_p − Σ_s ℓ'_s Δu_s]: what a change of all similarities does to the positives'
    softmax: P and Δu (..., anchors, candidates), positives on the diagonal → (..., anchors)."""
    p = softmax.diagonal(dim1=-2, dim2=-1)
    return p / tau * (change.diagonal(dim1=-2, dim2=-1) - (softmax * change).sum(-1))


def positive_similarity(alpha: Tensor, kappa: Tensor) -> Tensor:
    """E Σ_i h_i(X) h_i(Y) = Σ_i Σ_j α_ij² κ_j at b = 0 and uniform attention; of a negative pair it is 0."""
    return (alpha.square() * kappa).sum((-1, -2))


def printed_rates(epsilon: float, alpha: float, d: int, eta: float, strength: float) -> tuple[float, float]:
    """Theorem 3.2's growth per step along M_{j*} and, at most, along other features: ηε²αC/d and ηε³αC/d² with
    C = C_z log log d, up to constants. Their ratio is ε/d."""
    return eta * epsilon**2 * alpha * strength / d, eta * epsilon**3 * alpha * strength / d**2


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
