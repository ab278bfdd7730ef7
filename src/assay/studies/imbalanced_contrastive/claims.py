"""What claims of several parts ask in the same way: the tolerance of identities and of orders, the size of the source's
model, the exponent of a power law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

EXACT = 1e-10
AN_ORDER: dict[str, Any] = {"within": 0.25, "because": "a quarter of the way to the next whole orders"}
SOURCE_MODEL = {"five frequent and four rare features": lambda p: (p.majority, p.minority) == (5, 4)}


def power(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """The exponent of a power law by least squares in logarithms; NaN where a value is not positive."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if bool((y > 0).all()) else math.nan
