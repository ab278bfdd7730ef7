"""What the mathematics predicts, with the source's names: α_ij = ⟨w_i, M_j⟩, q_j rates, κ_j correlations, τ, η, λ.

Formulas that people use before their own trainings come from ``assay.methods.contrastive_planning``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from assay.methods.neuron_sets import set_thresholds

from .problem import TokenPairs

TAU = 4.0  # τ of the arms that check the mathematics
MARGIN = 0.1  # γ of the neuron sets


def pair_correlations(problem: TokenPairs, rare: Sequence[float] | float) -> Tensor:
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


def set_energies(alpha: Tensor, members: Tensor) -> Tensor:
    """𝔉_j = Σ_{i∈𝓜_j} α_ij², which stage 3 puts at Θ((ε_j/ε_max)² τ log³ d): (..., neurons, features) →
    (..., features). ``members`` are the sets 𝓜_j of the initial weights."""
    return (alpha.square() * members).sum(-2)


def positive_similarity(alpha: Tensor, kappa: Tensor) -> Tensor:
    """E Σ_i h_i(X) h_i(Y) = Σ_i Σ_j α_ij² κ_j at b = 0 and uniform attention; of a negative pair it is 0."""
    return (alpha.square() * kappa).sum((-1, -2))


def printed_rates(epsilon: float, alpha: float, d: int, eta: float, strength: float) -> tuple[float, float]:
    """Theorem 3.2's growth per step along M_{j*} and, at most, along other features: ηε²αC/d and ηε³αC/d² with
    C = C_z log log d, up to constants. Their ratio is ε/d."""
    return eta * epsilon**2 * alpha * strength / d, eta * epsilon**3 * alpha * strength / d**2
