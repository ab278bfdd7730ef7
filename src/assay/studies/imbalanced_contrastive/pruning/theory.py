"""How long pruning takes, by the proof of Theorem 3.2."""

from __future__ import annotations

import math


def pruning_horizon(gap: float, rate: float) -> float:
    """T₅ − T₄: the steps in which a coefficient that grows by 1 + ``rate`` gains a factor ``gap``. The source prints
    the linearised (gap − 1)/rate, which is larger."""
    if gap < 1 or rate <= 0:
        raise ValueError("a horizon needs a gap of at least 1 and a positive rate")
    return math.log(gap) / math.log1p(rate)
