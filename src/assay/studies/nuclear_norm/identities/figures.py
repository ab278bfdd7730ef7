"""The identities of the norm with what rounding leaves of them."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, Params, charts

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


@part.table(
    "rank-one",
    caption="One logit, random inputs X, classifiers v and heads h: the nuclear norm of feature extractors with the "
    "same classifier over ‖Xv‖/‖h‖, which the one of rank one attains up to rounding (from the least to the largest "
    "seed) and which no other falls below (mean over seeds with its 95 % interval). Each is the worst of a seed's "
    "random instances.",
    shows=("N3",),
)
def rank_one(m: Measurements[Params]) -> pl.DataFrame:
    attained, others = m.every("attained_error", arm="rank-one"), m.final("least_of_others", arm="rank-one")
    return charts.by_claim(
        [
            ("N3", "|norm of the extractor of rank one/(‖Xv‖/‖h‖) − 1|", attained, "0"),
            ("N3", "least norm of other extractors/(‖Xv‖/‖h‖)", others, "1 at least"),
        ]
    )
