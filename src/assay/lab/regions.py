"""The values that meet a criterion, and how a criterion writes them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_NUMBER = r"(-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf))"
_WRITTEN = re.compile(
    rf"(?:(?P<sign>[≥≤<>]) {_NUMBER}|in (?P<left>[(\[]){_NUMBER}, {_NUMBER}[)\]])"
    rf"(?: \(tolerance (?P<tolerance>\S+)\))?(?: \(margin: .*\))?$"
)


@dataclass(frozen=True)
class Region:
    """The values that meet a criterion: an interval, its ends included or not."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"no value lies between {self.low} and {self.high}")

    def text(self) -> str:
        least, most = (">", "<") if self.open else ("≥", "≤")
        if math.isinf(self.high):
            return f"{least} {written(self.low)}"
        if math.isinf(self.low):
            return f"{most} {written(self.high)}"
        left, right = "()" if self.open else "[]"
        return f"in {left}{written(self.low)}, {written(self.high)}{right}"

    def has(self, value: float) -> bool:
        """Whether a value meets the criterion; one that is not finite meets none."""
        if not math.isfinite(value):
            return False
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def contains(self, low: float, high: float) -> bool:
        return self.has(low) and self.has(high)

    def misses(self, low: float, high: float) -> bool:
        return (high <= self.low or low >= self.high) if self.open else (high < self.low or low > self.high)

    @classmethod
    def read(cls, criterion: str) -> tuple[Region | None, float]:
        """The region at the end of a criterion's words, and its tolerance; None where the words name no region."""
        found = _WRITTEN.search(criterion)
        if found is None:
            return None, 0.0
        tolerance = float(found["tolerance"] or 0)
        if sign := found["sign"]:
            edge, open = float(found[2]), sign in "<>"
            return (cls(low=edge, open=open) if sign in "≥>" else cls(high=edge, open=open)), tolerance
        return cls(float(found[4]), float(found[5]), found["left"] == "("), tolerance


def written(value: float) -> str:
    """A number in a criterion."""
    return f"{value:.6g}"
