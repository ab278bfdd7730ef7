"""What is left of gradient descent when one part of the construction is changed."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements

from .arms import BROKEN, Params, part


@part.table(
    "broken",
    caption="How far the output is from gradient descent when one part of the construction is changed (mean and "
    "largest over trials), and the largest share of a loop's movement that the probe finds off the gradient.",
    shows=("N1", "N2", "N3", "N7"),
)
def broken(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for change in BROKEN:
        apart = m.final("deviation", arm="broken", change=change).array
        residual = m.final("probe_residual", arm="broken", change=change).array
        rows.append(
            {"change": change, "mean": apart.mean(), "largest": apart.max(), "probe residual": float(residual.mean())}
        )
    return pl.DataFrame(rows)
