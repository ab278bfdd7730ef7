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


def fine_ratio_envelope(k: int) -> tuple[float, float]:
    """The range of common over subclass growth until T0, from the ranges of 1 − p − (k−1)p' and of 1 − p: [¼, ⅔] up to
    1 ± O(1/k)."""
    low, high = fine_common_envelope(k)
    return low / (1 - 1 / (3 * k)), high / (1 - 3 / (4 * k))


def least_outputs(
    k: int, common: Tensor, subclass: Tensor, S_com: Tensor, S_sub: Tensor, B: float = OUTPUT_BOUND
) -> tuple[Tensor, Tensor]:
    """Corollary G.2.1's Ω(1) with its constants: the least that common and subclass detectors make up of the outputs at
    T0, in the mean over classes: (seeds,) each, from numbers of detectors and of neurons that fire (seeds, classes).

    Until T0 an output grows by at most ⅔ S_com + (1 − 1/(3k)) S_sub a step, in units of ηs*²/(2kP), and some output has
    reached B; meanwhile the detectors of a class have added at least ¼ and 1 − 3/(4k) of their number."""
    low, high = fine_common_envelope(k)
    fastest = (high * S_com + (1 - 1 / (3 * k)) * S_sub).amax(1)
    return B * low * common.mean(1) / fastest, B * (1 - 3 / (4 * k)) * subclass.mean(1) / fastest


def fine_phase_time(
    eta: float, k: int, s: float, P: int, common: Count, subclass: Count, B: float = OUTPUT_BOUND
) -> Count:
    """T0(B) of fine training (the corollary on T0 omits the factor T0; this is η T0 s*²|S*|/(kP) = Θ(1) solved)."""
    return 2 * k * P * B / (eta * s**2 * (0.5 * common + (1 - 1 / (2 * k)) * subclass))
