"""What several claims ask in the same way: one value per seed out of several, without losing a NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from assay.lab import Values

EXACT = 1e-10
SOURCE_MODEL = {"five frequent and four rare features": lambda p: (p.majority, p.minority) == (5, 4)}


def unless_nan(choose: Callable[[list[float]], Any], values: list[float]) -> float:
    """NaN as soon as one value is: min and max would drop it or not by its place in the list."""
    return math.nan if any(math.isnan(value) for value in values) else float(choose(values))


def combined(choose: Callable[[list[float]], Any], parts: list[Values], what: str) -> Values:
    """One value per seed that all parts have, chosen among (or made of) the parts' values."""
    seeds = sorted(set.intersection(*(set(part.by_seed) for part in parts)))
    return Values({seed: unless_nan(choose, [part.by_seed[seed] for part in parts]) for seed in seeds}, what)


def farthest_from(level: float) -> Callable[[list[float]], float]:
    """The value that is farthest from ``level``: the worst where all should be there."""
    return lambda values: max(values, key=lambda value: abs(value - level))
