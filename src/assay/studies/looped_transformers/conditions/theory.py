"""Condition numbers of Gaussian prompts: their mean, means over few trials, and the limit of large ones."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def trial_means(kappa: Array, trials: int) -> Array:
    """Means of κ (seeds, draws) over disjoint groups of ``trials``: (seeds, groups)."""
    groups = kappa.shape[1] // trials
    means: Array = kappa[:, : groups * trials].reshape(len(kappa), groups, trials).mean(2)
    return means


def mean_condition(n: int, d: int, nodes: int = 60) -> float:
    """E[κ] of Gaussian X (n, d) by Gauss–Legendre quadrature over the joint density of the eigenvalues of XᵀX.

    With r the eigenvalues over the smallest, 1 = r₁ ≤ … ≤ r_d = κ, their common scale integrates out of the density
    Πλ^{(n−d−1)/2}e^{−λ/2}·Π|λᵢ − λⱼ| and leaves Πr^{(n−d−1)/2}·Π|rᵢ − rⱼ|·(Σr)^{−nd/2}.
    """
    if not 2 <= d <= 4 or n <= d:
        raise ValueError(f"n = {n} and d = {d}: the quadrature is for 2 ≤ d ≤ 4 and n > d")
    if n == d + 1:
        return math.inf  # the density falls as κ^{−(n−d+3)/2}
    points, weights = np.polynomial.legendre.leggauss(nodes)
    points = (1 + points) / 2
    first, *others = np.meshgrid(*[points] * (d - 1), indexing="ij")
    # κ = 1/s², so that half-integer powers of κ are whole ones of s; each further r is a share of the way from 1.
    ratios, density = [first**-2], 2 * first**-3
    for share in others:
        density = density * (ratios[-1] - 1)
        ratios.append(1 + (ratios[-1] - 1) * share)
    ratios.append(np.ones_like(first))
    log = (n - d - 1) / 2 * sum(np.log(r) for r in ratios) - n * d / 2 * np.log(sum(ratios))
    density = density * np.exp(log - log.max())
    for larger, smaller in itertools.combinations(ratios, 2):
        density = density * (larger - smaller)
    for axis in range(d - 1):
        density = np.moveaxis(np.moveaxis(density, axis, -1) * weights, -1, axis)
    return float((density * ratios[0]).sum() / density.sum())


def edge_condition(n: int, d: int) -> float:
    """((1 + √(d/n))/(1 − √(d/n)))²: κ of a large Gaussian X from the edges of its spectrum."""
    if n <= d:
        raise ValueError(f"{n} examples in {d} dimensions: κ needs n > d")
    ratio = math.sqrt(d / n)
    return ((1 + ratio) / (1 - ratio)) ** 2
