"""Numbers that a user hands over, checked where they come in: text, a flag or NaN fails at once and by name, not later
as an error of the arithmetic, or as no error at all (NaN passes every comparison that asks for what is wrong)."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from torch import Tensor


def number(name: str, value: Any, *, infinite: bool = False) -> None:
    """Refuse what is not a finite number; ``infinite`` allows ±∞. NumPy's numbers and tensors of one element, such as
    a temperature that is learned, are numbers too."""
    tensor = isinstance(value, (Tensor, np.ndarray)) and math.prod(value.shape) == 1
    inside = value.item() if tensor else value
    if isinstance(inside, bool) or not isinstance(inside, Real) or math.isnan(inside):
        raise ValueError(f"{name} must be a number, not {value!r}")
    if math.isinf(inside) and not infinite:
        raise ValueError(f"{name} must be finite, not {value!r}")


def whole(name: str, value: Any, least: int | None = None) -> int:
    """``value`` as Python's integer, which NumPy's become; what is none, or one below ``least``, is refused."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be an integer, not {value!r}")
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return int(value)
