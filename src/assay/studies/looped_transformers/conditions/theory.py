"""Condition numbers of Gaussian prompts: means over few trials, and the limit of large ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def trial_means(kappa: Array, trials: int) -> Array:
    """Means of κ (seeds, draws) over disjoint groups of ``trials``: (seeds, groups)."""
    groups = kappa.shape[1] // trials
    means: Array = kappa[:, : groups * trials].reshape(len(kappa), groups, trials).mean(2)
    return means


def edge_condition(n: int, d: int) -> float:
    """((1 + √(d/n))/(1 − √(d/n)))²: κ of a large Gaussian X from the edges of its spectrum."""
    if n <= d:
        raise ValueError(f"{n} examples in {d} dimensions: κ needs n > d")
    ratio = math.sqrt(d / n)
    return ((1 + ratio) / (1 - ratio)) ** 2
