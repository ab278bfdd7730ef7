"""Numbers made out of finite ones. A value that is not finite never helps a claim. ``max``, ``min`` and comparisons
lose NaN in Python, so whatever is made of a number that is not finite is NaN here, and no criterion holds with one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def whole(function: Callable[..., Any], *values: float) -> float:
    """The function of numbers that are all finite; NaN of any others, which a comparison would make a plain number. A
    number that the function is not made for (the logarithm of 0) gives NaN too: it was measured, and is no mistake."""
    if not all(map(math.isfinite, values)):
        return math.nan
    try:
        return float(function(*values))
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.nan


def ratio(a: float, b: float) -> float:
    return a / b if b else math.nan
