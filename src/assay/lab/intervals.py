"""Intervals over seeds: what the data allow to be said about a quantity, and no more.

The estimate is always the mean over seeds. Its interval is Student's, on the scale that the quantity calls for: shares
on the logit scale, so that none leaves [0, 1], ratios on the log scale; differences of shares and correlations end at
−1 and 1. Answers that are right or wrong get the exact
interval of Clopper and Pearson. A share that was measured in so many trials is never known better than those trials
tell, however much the seeds agree; through sums and differences that bound is carried by recovering each side's
variance from its own limits (MOVER).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np

from assay.probes.intervals import clopper_pearson

Scale = Literal["plain", "share", "ratio", "signed"]
_RANGES = {"share": (0.0, 1.0), "signed": (-1.0, 1.0)}
Name = TypeVar("Name")


@dataclass(frozen=True)
class Counted:
    """A linear combination of shares that were counted: ``terms`` are (factor, successes, trials), seeds pooled."""

    terms: tuple[tuple[float, float, float], ...]

    def __add__(self, other: Counted) -> Counted:
        return Counted((*self.terms, *other.terms))

    def times(self, factor: float) -> Counted:
        return Counted(tuple((factor * f, k, n) for f, k, n in self.terms))

    def reach(self, confidence: float) -> tuple[float, float]:
        """How far below and above its estimate the combination may lie, by the trials alone."""
        down = up = 0.0
        for factor, k, n in self.terms:
            low, high = clopper_pearson(k, n, confidence)
            below, above = k / n - low, high - k / n
            if factor < 0:
                below, above = above, below
            down += (factor * below) ** 2
            up += (factor * above) ** 2
        return math.sqrt(down), math.sqrt(up)


@dataclass(frozen=True)
class Sample:
    """One finite number per seed, with what is known about how it came about."""

    values: np.ndarray[Any, Any]
    scale: Scale = "plain"
    counted: Counted | None = None

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def spread(self) -> float:
        """The deviation between seeds; what is rounding counts as none."""
        spread = float(self.values.std(ddof=1)) if self.count > 1 else 0.0
        return 0.0 if spread <= 8 * np.finfo(float).eps * float(np.abs(self.values).max(initial=0.0)) else spread

    @property
    def right_or_wrong(self) -> bool:
        """Whether every seed says 1 or 0 and nothing tells of more trials than one."""
        alone = self.counted is None or [n for _, _, n in self.counted.terms] == [self.count]
        return alone and self.scale == "share" and set(np.unique(self.values)) <= {0.0, 1.0}

    @property
    def all_equal(self) -> bool:
        """Whether the seeds agree to the last digit, which says nothing of how far others would differ."""
        return self.spread == 0 and self.counted is None and not self.right_or_wrong

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval of the mean at this confidence."""
        if self.right_or_wrong:
            return clopper_pearson(float(self.values.sum()), self.count, confidence)
        low, high = self._student(confidence)
        if self.counted is not None:
            down, up = self.counted.reach(confidence)
            low, high = min(low, self.mean - down), max(high, self.mean + up)
        least, most = _RANGES.get(self.scale, (-math.inf, math.inf))
        return max(low, least), min(high, most)

    def _student(self, confidence: float, count: int | None = None) -> tuple[float, float]:
        mean, count = self.mean, count or self.count
        half = student(count, confidence) * self.spread / math.sqrt(count)
        if half == 0:
            return mean, mean
        if self.scale == "share" and 0 < mean < 1:
            reach = half / (mean * (1 - mean))
            return _expit(_logit(mean) - reach), _expit(_logit(mean) + reach)
        if self.scale == "ratio" and bool((self.values > 0).all()):
            return mean * math.exp(-half / mean), mean * math.exp(min(half / mean, 700.0))
        return mean - half, mean + half

    def with_seeds(self, count: int, confidence: float) -> tuple[float, float]:
        """The interval that so many seeds of the same mean and spread would have."""
        if self.right_or_wrong:
            return clopper_pearson(self.mean * count, count, confidence)
        low, high = self._student(confidence, count)
        if self.counted is not None:
            more = count / self.count
            grown = Counted(tuple((f, k * more, n * more) for f, k, n in self.counted.terms))
            down, up = grown.reach(confidence)
            low, high = min(low, self.mean - down), max(high, self.mean + up)
        return low, high


@lru_cache(maxsize=1024)
def student(count: int, confidence: float) -> float:
    """Student's two-sided quantile for so many seeds."""
    from scipy import special  # slow to import, and not every command judges

    return float(special.stdtrit(count - 1, 0.5 + confidence / 2))


def holm(p_values: Mapping[Name, float]) -> dict[Name, float]:
    """Holm's adjusted p-values: of several statements, all with one of at most 5 % stand together at 95 %."""
    adjusted: dict[Name, float] = {}
    largest = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - rank)))
        adjusted[name] = largest
    return adjusted


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-max(x, -700.0)))
