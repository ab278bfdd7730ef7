"""Population optima in the diagonal model: weight decay, a limited number of features, and the nuclear norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad

from ..problem import Environments
from ..theory import SumLaw, TwoKinds, log_chernoff, minimise


def smallest_dimension(invariant: int, gamma: float) -> int:
    """The least d that Proposition 6.3 allows: above r/γ² + r."""
    return math.floor(invariant / gamma**2 + invariant + 1e-9) + 1  # what rounding leaves of a whole number is whole


def legal(invariant: int, gamma: float) -> bool:
    """Whether γ lies in the range (3/√r, ½) of the theory."""
    return 3 / math.sqrt(invariant) < gamma < 0.5


def threshold(invariant: int) -> float:
    """γ up to which the nuclear norm leaves environmental features out, to leading order in many features. Their gain
    per unit of price, γ/√(1/3 − γ²), must stay below that of invariant ones, ½/(1/√12 + 1/(2√r)), whose mean adds the
    second term to the price."""
    most = 3 / (1 + math.sqrt(3 / invariant)) ** 2
    return math.sqrt(most / 3 / (1 + most))


@dataclass(frozen=True)
class Optimum:
    """The weights that all invariant and all environmental features share."""

    alpha: float
    beta: float

    @classmethod
    def of(cls, weights: Tensor) -> Optimum:
        return cls(float(weights[0]), float(weights[1]))

    def log_accuracy(self, problem: Environments) -> float:
        """The logarithm of an upper bound on the out-of-domain accuracy; 0 where the bound says nothing."""
        return log_chernoff(problem, self.alpha, self.beta)

    def least_accuracy(self, problem: Environments) -> float:
        """A lower bound on the out-of-domain accuracy; without environmental features no margin is negative."""
        return 1.0 if self.beta == 0 else -math.expm1(log_chernoff(problem, self.alpha, self.beta, wrong=True))


def decayed(problem: Environments, decay: float) -> Optimum:
    """The optimum with weight decay, Lemma 6.1: E ℓ(α·S_R + β·S_U) + λ/2·(r·α² + (d − r)·β²)."""
    kinds, counts = TwoKinds.of(problem), _counts(problem)
    start = torch.full((2,), 0.5 / math.sqrt(problem.dim), dtype=torch.float64)
    return Optimum.of(minimise(lambda w: kinds.loss(w) + decay / 2 * (counts * w.square()).sum(), start))


def nuclear_norm(problem: Environments, weights: Tensor) -> Tensor:
    """lim ‖Z·diag(w)‖_*/√n in closed form: all but one singular value of each kind are a feature's deviation, and the
    last of both come from a 2 × 2 matrix K, of which tr K^{1/2} = (tr K + 2·√det K)^{1/2}."""
    r, m = problem.invariant, problem.environmental
    alpha, beta = weights
    a, b, c = _spike(problem)
    flat = (r - 1) * alpha * math.sqrt(1 / 12) + (m - 1) * beta * math.sqrt(1 / 3 - problem.gamma**2)
    norm: Tensor = flat + (a * alpha**2 + b * beta**2 + 2 * c * alpha * beta).sqrt()
    return norm


def penalised(problem: Environments, strength: float) -> Optimum:
    """The optimum with the nuclear norm, for positive ``strength``. The problem is convex, so that environmental
    features are out (β = 0) exactly where the slope towards them is not negative at the best α without them."""
    kinds = TwoKinds.of(problem)
    alone = TwoKinds(kinds.invariant, SumLaw.of(0))

    def objective(weights: Tensor) -> Tensor:
        return kinds.loss(weights) + strength * nuclear_norm(problem, weights)

    def without(alpha: Tensor) -> Tensor:
        none = torch.zeros_like(alpha[0])
        return alone.loss(torch.stack([alpha[0], none])) + strength * nuclear_norm(
            problem, torch.stack([alpha[0], none])
        )

    if slope_at_zero(problem, strength) >= 0:
        return Optimum(0.0, 0.0)
    alpha = minimise(without, torch.tensor([0.5 / math.sqrt(problem.invariant)], dtype=torch.float64))
    edge = torch.stack([alpha[0], torch.zeros_like(alpha[0])])
    if float(grad(objective)(edge)[1]) >= 0:
        return Optimum(float(alpha[0]), 0.0)
    return Optimum.of(minimise(objective, torch.stack([alpha[0], 1e-3 * alpha[0]])))


def slope_at_zero(problem: Environments, strength: float) -> float:
    """The steepest slope of the penalised objective at w = 0; nothing is learned where it is not negative. The loss
    falls by half the mean margin, α·r/2 + β·(d − r)·γ over 2, and the norm is homogeneous: the best of all directions
    is searched on a fine grid."""
    angles = torch.linspace(0, math.pi / 2, 2001, dtype=torch.float64)
    directions = torch.stack([angles.cos(), angles.sin()])
    gain = (directions[0] * problem.invariant / 2 + directions[1] * problem.environmental * problem.gamma) / 2
    return float((strength * nuclear_norm(problem, directions) - gain).min())


def support_optimum(invariant: int, environmental: int, gamma: float, decay: float) -> tuple[float, Optimum]:
    """The least loss with weight decay of a network that uses so many features of each kind, and where it has it."""
    kinds = TwoKinds(SumLaw.of(invariant), SumLaw.of(environmental, gamma))
    counts = torch.tensor([invariant, environmental], dtype=torch.float64)
    used = torch.eye(2, dtype=torch.float64)[counts > 0]  # (kinds in use, 2)

    def objective(free: Tensor) -> Tensor:
        weights = free @ used
        return kinds.loss(weights) + decay / 2 * (counts * weights.square()).sum()

    best = minimise(objective, torch.full((len(used),), 0.5, dtype=torch.float64))
    return float(objective(best)), Optimum.of(best @ used)


def support_accuracy(invariant: int, environmental: int, gamma: float, found: Optimum) -> float:
    """How often a network with these weights on so many features of each kind is right outside."""
    outside = TwoKinds(SumLaw.of(invariant), SumLaw.of(environmental, -gamma))
    return outside.positive(torch.tensor([found.alpha, found.beta], dtype=torch.float64))


def scaled_loss(invariant: int, scale: float) -> float:
    """The loss without any penalty of equal weights on invariant features only; it falls to 0 with their scale."""
    return float(TwoKinds(SumLaw.of(invariant), SumLaw.of(0)).loss(torch.tensor([scale, 0.0], dtype=torch.float64)))


@dataclass(frozen=True)
class Hoeffding:
    """Σ(b − a)² over the ranges of α/β·z_R and z_U with α/β = 3/(4γ), the printed 4d, and the bound that replaces
    it, 5(d − r)."""

    exact: float
    printed: float
    corrected: float

    @classmethod
    def of(cls, problem: Environments) -> Hoeffding:
        r, m = problem.invariant, problem.environmental
        return cls(9 * r / (16 * problem.gamma**2) + 4 * m, 4.0 * problem.dim, 5.0 * m)


def _counts(problem: Environments) -> Tensor:
    return torch.tensor([problem.invariant, problem.environmental], dtype=torch.float64)


def _spike(problem: Environments) -> tuple[float, float, float]:
    """tr K = a·α² + b·β² and √det K = c·αβ."""
    r, m, gamma = problem.invariant, problem.environmental, problem.gamma
    a, b = 1 / 12 + r / 4, 1 / 3 - gamma**2 + gamma**2 * m
    return a, b, math.sqrt(a * b - gamma**2 * r * m / 4)
