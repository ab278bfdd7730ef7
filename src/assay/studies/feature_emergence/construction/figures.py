"""What the constructed network is held to, in numbers."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from ..params import Patterns
from .arms import part


@part.table(
    "good-network",
    caption="The network of 3(k+1) neurons that is constructed to output any label of a count of k patterns, on random "
    "label sets, means and sizes (100 per seed; 'to': the smallest and the largest of all seeds). Its output weights "
    "are numbers of the construction and no seed has a part in them; the orthonormal family is the one that the other "
    "rows are about, and the general family's hats are twice as high.",
    shows=("C1", "C1c", "C1d"),
)
def good_network(m: Measurements[Patterns]) -> pl.DataFrame:
    where = {"arm": "good-network"}
    outputs = {family: m.exact("output_per_pattern", family=family, **where) for family in ("orthonormal", "general")}
    return charts.quantities(
        {
            "largest error |g − y| over all counts": (m.every("largest_error", **where), "0 up to rounding"),
            "smallest bias, 32k|b*|": (m.every("bias_share_of_bound", **where), "at least 1"),
            "largest output weight, |a*|/k": (outputs["orthonormal"], "at most 32"),
            "largest output weight, |a*|/k, general family": (outputs["general"], "at most 128 (printed: 64)"),
        }
    )
