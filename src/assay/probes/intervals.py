"""A mean over seeds with its 95 % Student interval, without SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """A mean and the ends of its interval: NaN where one value alone has none."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """+1 or −1 where the whole interval lies on one side of zero, 0 where that is undecided."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean and two-sided Student interval of values, one for each seed."""
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return Interval(mean, math.nan, math.nan)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
    half = student_quantile((1 + confidence) / 2, count - 1) * spread
    return Interval(mean, mean - half, mean + half)


@cache
def student_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t for a probability in [1/2, 1). With t = √ν tan θ the density is cos^{ν−1} θ, which
    is integrated on a grid."""
    theta = np.linspace(0, math.pi / 2, 200_001)
    density = np.cos(theta) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    place = float(np.interp(2 * probability - 1, area / area[-1], theta))
    return math.sqrt(freedom) * math.tan(place)
