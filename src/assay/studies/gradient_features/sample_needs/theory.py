"""How many samples a method needs, read off its accuracy at several sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence


def samples_needed(counts: Sequence[float], accuracies: Sequence[float], level: float) -> float:
    """The number of samples at which the accuracy first reaches the level, between two counts on a straight line over
    log n. NaN where it never does, and where the first count is enough already: the number is not known then."""
    for at in range(1, len(counts)):
        before, after = accuracies[at - 1], accuracies[at]
        if before < level <= after:
            share = (level - before) / (after - before)
            return math.exp(math.log(counts[at - 1]) * (1 - share) + math.log(counts[at]) * share)
        if before >= level:
            break
    return math.nan
