"""The two-dimensional task in closed form: accuracies by the slope of the boundary, and the population optima."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..problem import Environments
from ..theory import TwoKinds, minimise


def accuracy(problem: Environments, slope: float, *, outside: bool = False) -> float:
    """The accuracy of sign(x₁ + ρ·x₂) for |ρ| ≤ 1: the label is lost where x₂ disagrees with it and |ρ·x₂| exceeds
    |x₁|. For every linear classifier the two domains' errors are in the same proportion, turned over where ρ < 0."""
    against = 0.5 - problem.gamma
    if outside != (slope < 0):
        against = 1 - against
    return 1 - against * abs(slope) / 2


def decayed_slope(problem: Environments, decay: float) -> float:
    """ρ = v₂/v₁ of the optimum with weight decay."""
    kinds = TwoKinds.of(problem)
    return _slope(minimise(lambda v: kinds.loss(v) + decay / 2 * v.square().sum(), _start()))


def penalised_slope(problem: Environments, strength: float) -> float:
    """ρ of the optimum with the nuclear norm. The best features of a given classifier v are of rank one, and their
    norm over √n is (vᵀΣv)^{1/2}."""
    kinds, moments = TwoKinds.of(problem), problem.second_moments
    if strength >= vanishing(problem):
        raise ValueError(f"with a strength of {strength} and more than {vanishing(problem):.3f} nothing is learned")
    return _slope(minimise(lambda v: kinds.loss(v) + strength * (v @ moments @ v).sqrt(), _start()))


def vanishing(problem: Environments) -> float:
    """The strength ½·(μᵀΣ⁻¹μ)^{1/2} from which on nothing is learned."""
    mean = problem.means
    return 0.5 * math.sqrt(float(mean @ torch.linalg.solve(problem.second_moments, mean)))


def strong_slopes(problem: Environments) -> tuple[float, float]:
    """ρ in the limit of a strong weight decay, 2γ, and of a strong nuclear norm, γ/(2 − 6γ²)."""
    gamma = problem.gamma
    return 2 * gamma, gamma / (2 - 6 * gamma**2)


def _slope(v: Tensor) -> float:
    return float(v[1] / v[0])


def _start() -> Tensor:
    return torch.tensor([0.5, 0.25], dtype=torch.float64)
