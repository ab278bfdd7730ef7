"""Axes that figures of several parts have."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import polars as pl

DASHES = alt.Scale(range=[[1, 0], [5, 3]])
LONG = alt.Legend(symbolSize=400)


def powers_of_ten(values: pl.Series, every: int = 1) -> dict[str, Any]:
    """A logarithmic axis with a tick, and a grid line, at every power of ten alone, or at those of 10^``every``."""
    array = values.to_numpy()
    low, high = (math.log10(end) / every for end in (np.nanmin(array), np.nanmax(array)))
    ticks = [10.0 ** (every * power) for power in range(math.floor(low), math.ceil(high) + 1)]
    return {
        "scale": alt.Scale(type="log", domain=[ticks[0], ticks[-1]]),
        "axis": alt.Axis(values=ticks, format=".0e"),
    }
