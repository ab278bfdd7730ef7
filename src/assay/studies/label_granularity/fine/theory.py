"""What the mathematics predicts of training on fine labels until T0, when an output first reaches B."""

from __future__ import annotations

import math
from typing import TypeVar

from torch import Tensor

Count = TypeVar("Count", float, Tensor)
OUTPUT_BOUND = math.log(1.5)  # B: while all outputs lie in [0, log 3/2], p ∈ [1/(3k), 3/(4k)]


def fine_common_envelope(k: int) -> tuple[float, float]:
    """The range of 1 − p − (k−1)p' while all outputs are in [0, log 3/2], from p, p' ∈ [1/(3k), 3/(4k)]."""
    return 1 - k * 3 / (4 * k), 1 - k / (3 * k)


def fine_phase_time(
    eta: float, k: int, s: float, P: int, common: Count, subclass: Count, B: float = OUTPUT_BOUND
) -> Count:
    """T0(B) of fine training (the corollary on T0 omits the factor T0; this is η T0 s*²|S*|/(kP) = Θ(1) solved)."""
    return 2 * k * P * B / (eta * s**2 * (0.5 * common + (1 - 1 / (2 * k)) * subclass))
