"""What a number of loops leaves of the error, from the spectrum of a large Gaussian prompt."""

from __future__ import annotations

import math

import numpy as np


def remaining_error(n: int, d: int, loops: int) -> float:
    """The root mean square of ‖θ_T − θ*‖ for a θ* of norm one in a random direction, with steps of one over the upper
    edge of the spectrum. Derived: of a direction with eigenvalue λ the part (1 − λ/b)^T is left, and eigenvalues of
    XᵀX/n follow Marchenko and Pastur's law on [a, b] = [(1 − √(d/n))², (1 + √(d/n))²]."""
    if n <= d:
        raise ValueError(f"{n} examples in {d} dimensions: the spectrum has zeros unless n > d")
    ratio = math.sqrt(d / n)
    low, high = (1 - ratio) ** 2, (1 + ratio) ** 2
    angle = (np.arange(2000) + 0.5) * math.pi / 2000
    eigenvalue = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    weight = np.sin(angle) ** 2 / eigenvalue  # the density, and dλ/d(angle)
    left = (1 - eigenvalue / high) ** (2 * loops)
    return math.sqrt(float((weight * left).sum() / weight.sum()))
