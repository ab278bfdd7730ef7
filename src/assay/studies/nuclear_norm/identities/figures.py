"""The identities of the norm with what rounding leaves of them."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, Params

from .arms import SHAPES, part


@part.table(
    "identities",
    caption="Random matrices of three shapes: the largest difference between the gradient by automatic differentiation "
    "and U·Vᵀ, and what scaling by 3 does to the stable rank and to the printed ratio.",
    shows=("N2", "X9"),
)
def identities(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for shape in SHAPES:
        where = {"arm": "norm-identities", **shape}
        rows.append(
            {
                "rows × width": f"{shape['rows']} × {shape['width']}",
                "gradient − U·Vᵀ": f"{m.final('gradient_error', **where).array.max():.0e}",
                "stable rank, largest/possible": round(float(m.final("stable_rank_share", **where).array.max()), 3),
                "stable rank × 3, change": f"{m.final('stable_rank_moved', **where).array.max():.0e}",
                "printed × 3, factor": round(float(m.final("printed_moved", **where).array.mean()), 6),
            }
        )
    return pl.DataFrame(rows)
