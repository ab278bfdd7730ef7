"""The nuclear norm of a batch with few rows: how it weighs features, and what it would have to reach."""

from __future__ import annotations

from ..problem import Environments


def few_rows_ratio(problem: Environments) -> float:
    """α/β that the norm of a batch with far fewer rows than features leads to. Its rows are nearly orthogonal, so
    that it is the root of Σ var_j·w_j² (times √rows), a weighted ℓ2 norm: weights are in proportion to mean over
    variance, ½/(1/12) = 6 and γ/(1/3 − γ²)."""
    gamma = problem.gamma
    return 6 * (1 / 3 - gamma**2) / gamma


def needed_ratio(problem: Environments) -> float:
    """α/β above which more than half of the inputs outside have a positive mean margin."""
    return 2 * problem.gamma * problem.environmental / problem.invariant
