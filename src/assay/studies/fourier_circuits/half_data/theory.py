"""The wave through a neuron's weights."""

from __future__ import annotations

from typing import Any

import numpy as np

Vector = np.ndarray[Any, np.dtype[np.float64]]


def trigonometric_interpolation(u: Vector, points: Vector) -> Vector:
    """The trigonometric polynomial through u(0), ..., u(p−1), p odd, at real points."""
    p = len(u)
    transform = np.fft.fft(u)
    j = np.arange(1, (p + 1) // 2)
    waves = np.exp(2j * np.pi / p * np.outer(points, j)) @ transform[1 : (p + 1) // 2]
    values: Vector = (transform[0].real + 2 * waves.real) / p
    return values
