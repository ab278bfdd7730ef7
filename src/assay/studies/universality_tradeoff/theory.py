"""What the mathematics of the linear tasks predicts: weights of features, predictor norms, bounds, similarity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import softplus

from .problem import LinearTasks

# Convex and decreasing losses ℓ(t) of the margin t = φ(x)ᵀ(φ(x⁺) − φ(x⁻)).
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": lambda t: softplus(-t),
    "exponential": lambda t: torch.exp(-t),
    "hinge": lambda t: torch.relu(1 - t),
    "linear": lambda t: -t,
}


def even_weights(tasks: int) -> tuple[float, float]:
    """(α, β) = (1, 1/T): squared weights of shared and private features after pretraining on an even mixture, for every
    s, r and every convex decreasing loss. (Theorem 7.2 leaves α open and shows this for r = 2s.)"""
    return 1.0, 1 / tasks


def optimal_weights(problem: LinearTasks, *, nodes: int = 24) -> tuple[float, ...]:
    """(α, α₁, …, α_T): the convex program behind Theorem 7.2 for the logistic loss and any mixture,

    min Σ w_t E ℓ(α σ_S,t² Z + α_t σ_R,t² Z_t)  with  α s + (r − s) Σ α_t ≤ r  and all weights in [0, 1],

    Z and Z_t being χ² with s and r − s degrees of freedom and σ the scales of the features, by Gauss–Laguerre
    quadrature with so many ``nodes``."""
    import numpy as np
    from scipy.optimize import minimize
    from scipy.special import expit, roots_genlaguerre

    def chi_squared(degrees: int) -> tuple[np.ndarray, np.ndarray]:
        at, weights = roots_genlaguerre(nodes, degrees / 2 - 1)
        return 2 * at, weights / weights.sum()

    s, rest, shares = problem.shared, problem.private, np.array(problem.weights)
    if not rest:
        return (1.0,)
    (z, own), (z_t, others) = chi_squared(s), chi_squared(rest)
    mass = np.outer(own, others)
    scales = np.array([problem.scales(t) for t in range(problem.tasks)]).T ** 2
    first = scales[0][:, None, None] * z[None, :, None]  # tasks, nodes of Z, nodes of Z_t
    second = scales[1][:, None, None] * z_t[None, None, :]

    def value(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = weights[0] * first + weights[1:, None, None] * second
        slope = -expit(-margins) * mass
        total = float((shares * (np.logaddexp(0, -margins) * mass).sum((1, 2))).sum())
        by_task = shares * (slope * second).sum((1, 2))
        return total, np.concatenate([[(shares[:, None, None] * slope * first).sum()], by_task])

    cost = np.concatenate([[s], np.full(problem.tasks, rest)])
    budget = {"type": "ineq", "fun": lambda w: problem.relevant - cost @ w, "jac": lambda w: -cost}
    start = np.full(problem.tasks + 1, 0.5 * problem.relevant / cost.sum())
    options = {"ftol": 1e-14, "maxiter": 500}
    found = minimize(value, start, jac=True, bounds=[(0, 1)] * len(start), constraints=[budget], options=options)
    return tuple(float(weight) for weight in found.x)


def canonical(problem: LinearTasks, weights: Sequence[float]) -> Tensor:
    """The optimum that keeps every feature apart, in coordinates of z: W M = diag(√α, √α_t, 0), (k, d)."""
    sizes = [problem.shared] + [problem.private] * problem.tasks
    values = torch.cat(
        [torch.full((n,), math.sqrt(w), dtype=torch.float64) for n, w in zip(sizes, weights, strict=True)]
    )
    return torch.cat([torch.diag(values), torch.zeros(problem.features, problem.spurious, dtype=torch.float64)], 1)


def superposed(problem: LinearTasks) -> Tensor:
    """Another optimum of the even mixture: all private blocks share r − s directions, with weight 1/√T each. The loss
    sees features of one task at a time, so that it cannot tell the two apart; the rank is r instead of k."""
    found = torch.zeros(problem.features, problem.dim, dtype=torch.float64)
    found[: problem.shared, : problem.shared] = torch.eye(problem.shared)
    for t in range(problem.tasks):
        columns = problem.own(t)[problem.shared :]
        found[range(problem.shared, problem.relevant), columns] = 1 / math.sqrt(problem.tasks)
    return found


def predictor_norm(alpha: float, beta: float, shared: float, private: float) -> float:
    """B_φ,t = √(v₁/α + v₂/β): the smallest norm that fits the labels; infinite where a used feature has no weight."""
    if (alpha <= 0 < shared) or (beta <= 0 < private):
        return math.inf
    return math.sqrt((shared / alpha if shared else 0.0) + (private / beta if private else 0.0))


def leading_complexity(
    problem: LinearTasks, alpha: float, beta: float, private: float, labels: int, *, task: int = 0
) -> float:
    """B_φ,t √((sα σ_S² + (r − s)β σ_R²)/m): what bounds the Rademacher complexity of the norm-limited predictors, with
    the scales σ of the task's features."""
    shared, own, _ = problem.scales(task)
    norm = predictor_norm(alpha, beta, 1 - private, private)
    return norm * math.sqrt((problem.shared * alpha * shared**2 + problem.private * beta * own**2) / labels)


def risk_bound(complexity: float, labels: int, *, delta: float = 0.05) -> float:
    """4·R_m + 8√(2 ln(4/δ)/m) for a loss of slope at most 1 (Propositions 7.3 and 7.4)."""
    return 4 * complexity + 8 * math.sqrt(2 * math.log(4 / delta) / labels)


def bound_ratio(problem: LinearTasks, private: float) -> float:
    """Leading term of the universal bound over that of the specific one; (T + 1)/(2√T) for r = 2s and v₁ = v₂. For even
    mixtures and unit variances, which have the weights 1 and 1/T."""
    if problem.mixture or problem.shared_scales or problem.private_scales:
        raise ValueError(
            "the ratio of the bounds is for even mixtures of features with variance 1; for others give optimal_weights "
            "to leading_complexity"
        )
    s, rest, t = problem.shared, problem.private, problem.tasks
    return math.sqrt((1 - private + t * private) * (s + rest / t) / problem.relevant)


def specific_risk(labels: int, relevant: int) -> float:
    """Mean squared error of the smallest interpolant on m of r equally weighted features, ‖u*‖ = 1: 1 − m/r."""
    return max(0.0, 1 - labels / relevant)


def other_task_risk(labels: int, shared: int, private: float) -> float:
    """Mean squared error of least squares on the s shared features where v₂ of the label lies elsewhere. Its limit for
    many labels is the floor v₂; at finite m it is v₂(m − 1)/(m − s − 1)."""
    if labels <= shared + 1:
        return math.inf
    return private * (labels - 1) / (labels - shared - 1)


def updated_weight(problem: LinearTasks, radius: float) -> float:
    """√β of the target's private features after a contrastive update within ‖W − W*‖_F ≤ γ of the canonical optimum:
    min(1, 1/√T + γ/√(r − s)). (The source has r = 2s and writes √s.)"""
    return min(1.0, 1 / math.sqrt(problem.tasks) + radius / math.sqrt(problem.private))


def full_recovery(problem: LinearTasks) -> float:
    """The γ from which on the update gives the target's private features weight 1."""
    return math.sqrt(problem.private) * (1 - 1 / math.sqrt(problem.tasks))


def regularised_bound(alpha: float, beta: float) -> float:
    """2 + α/β + β/α under the root of the illustrative bound; least at α = β."""
    return 2 + alpha / beta + beta / alpha


def mixture_cka(shared: int, relevant: int, first: int, second: int) -> float:
    """Linear CKA on target data between pretraining on mixtures of ``first`` and of ``second`` tasks, the target among
    both."""
    private = relevant - shared
    own = [math.sqrt(shared + private / t**2) for t in (first, second)]
    return (shared + private / (first * second)) / (own[0] * own[1])


def foreign_cka(shared: int, relevant: int) -> float:
    """Between pretraining on the target and on another single task, which sees the shared features only: √(s/r)."""
    return math.sqrt(shared / relevant)


def decreasing(values: Sequence[float]) -> float:
    """The smallest fall from one value to the next; positive where all fall, NaN where one is not finite."""
    if not all(map(math.isfinite, values)):
        return math.nan
    return min(before - after for before, after in pairwise(values))
