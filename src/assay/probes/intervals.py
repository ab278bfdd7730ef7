"""Intervals for numbers that come from several seeds or prompts; all but that of a share without SciPy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from assay._extras import extra

CONFIDENCE = 0.95
NORMAL = 1.959963984540054  # 95 % of N(0, 1) lies within ± this


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval over ``count`` independent values; without an interval (NaN) below three."""

    estimate: float
    low: float
    high: float
    count: int

    def compared(self, value: float = 0.0) -> str:
        """``below``, ``above``, or ``undecided`` where the interval holds ``value`` or there is none."""
        return "below" if self.high < value else "above" if self.low > value else "undecided"

    @property
    def sign(self) -> int:
        """+1 or −1 where the whole interval lies on one side of zero, 0 where that is undecided."""
        return {"above": 1, "below": -1}.get(self.compared(), 0)

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_interval(values: Iterable[float]) -> Interval:
    """Mean and two-sided 95 % Student interval of values, one for each seed. Fewer than three have no interval, nor has
    anything with a value that is not finite."""
    found = np.asarray(list(values), dtype=float)
    if len(found) < 3 or not np.isfinite(found).all():
        estimate = float(found.mean()) if len(found) else math.nan
        return Interval(estimate, math.nan, math.nan, len(found))
    half = student(len(found) - 1) * float(found.std(ddof=1)) / math.sqrt(len(found))
    return Interval(float(found.mean()), float(found.mean()) - half, float(found.mean()) + half, len(found))


def share_interval(right: float, trials: int) -> Interval:
    """A share of ``trials`` with Wilson's 95 % interval, which has a width at 0 and at 1 too."""
    if trials < 1 or not math.isfinite(right):
        return Interval(math.nan, math.nan, math.nan, trials)
    share, z2 = right / trials, NORMAL**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = NORMAL * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return Interval(share, min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)), trials)


def sum_interval(parts: Iterable[tuple[float, Interval]]) -> Interval:
    """A weighted sum of independent shares: their distances to their own ends add as squares (Zou and Donner), so that
    the ends need not be as far from the estimate on both sides."""
    terms = [(weight, each) for weight, each in parts]
    estimate = sum(weight * each.estimate for weight, each in terms)
    below = [weight * (each.estimate - (each.low if weight > 0 else each.high)) for weight, each in terms]
    above = [weight * ((each.high if weight > 0 else each.low) - each.estimate) for weight, each in terms]
    count = sum(each.count for _, each in terms)
    return Interval(estimate, estimate - math.hypot(*below), estimate + math.hypot(*above), count)


def median_interval(values: Iterable[float]) -> Interval:
    """The median and the narrowest pair of order statistics, at equal distance from the ends, that hold the true one
    with at least 95 %, whatever the distribution. Fewer than six values cannot."""
    found = np.sort(np.asarray(list(values), dtype=float))
    n = len(found)
    if n == 0 or np.isnan(found).any():
        return Interval(math.nan, math.nan, math.nan, n)
    outside, cut = 0.0, 0
    while cut < n // 2 and outside + math.comb(n, cut) / 2**n <= (1 - CONFIDENCE) / 2:
        outside += math.comb(n, cut) / 2**n
        cut += 1
    if cut == 0:
        return Interval(float(np.median(found)), math.nan, math.nan, n)
    return Interval(float(np.median(found)), float(found[cut - 1]), float(found[n - cut]), n)


def sign_test(values: Iterable[float]) -> float:
    """The two-sided p-value that values are as often above as below zero; zeros say nothing and are left out."""
    found = [value for value in values if value != 0]
    if any(math.isnan(value) for value in found):
        return math.nan
    n, rarer = len(found), min(sum(value > 0 for value in found), sum(value < 0 for value in found))
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(rarer + 1)) / 2**n) if n else 1.0


@lru_cache(maxsize=1024)
def clopper_pearson(successes: float, trials: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact two-sided interval of a share."""
    with extra("lab", "an exact interval"):
        from scipy import special  # slow to import, and few callers ask

    tail = (1 - confidence) / 2
    low = float(special.betaincinv(successes, trials - successes + 1, tail)) if successes > 0 else 0.0
    high = float(special.betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return low, high


@cache
def student(freedom: int) -> float:
    """The t with 95 % of Student's distribution in ±t. With t = √ν tan θ the density of θ is cos^(ν−1) θ."""
    angles = np.linspace(0, np.pi / 2, 200_001)
    with np.errstate(divide="ignore"):
        density = np.exp((freedom - 1) * np.log(np.cos(angles)))
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(freedom) * math.tan(float(np.interp(CONFIDENCE * mass[-1], mass, angles)))
