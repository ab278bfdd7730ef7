"""The source's closed forms and how far each is from what it is checked against."""

from __future__ import annotations

import polars as pl

from assay.lab import Every, Measurements, charts

from .arms import part


@part.table(
    "identities",
    caption="Closed forms of the source on random networks and numbers, against enumeration and against each other: "
    "the smallest and the largest deviation over all sizes, labels and seeds. All of them are rounding. The source "
    "prints some of these lines otherwise; the claims say how.",
    shows=("C1d", "C1g", "C1h", "C1i"),
)
def identities(m: Measurements) -> pl.DataFrame:
    def found(metric: str) -> Every:
        return m.every(metric, arm="identities")

    margin = "mean margin by Fourier coefficients − by enumeration, over its bound"
    return charts.quantities(
        {
            margin: (found("transform_deviation"), "0"),
            "Σ_ζ cos(2πζ(Σa − c)/p) at the right label c, − (p−1)/2": (found("sum_at_answer"), "0"),
            "the same sum at wrong labels, smallest": (found("sum_elsewhere_low"), "−1/2 (printed: 0)"),
            "the same sum at wrong labels, largest": (found("sum_elsewhere_high"), "−1/2 (printed: 0)"),
            "signed sum of k-th powers / (2^k k! × product) − 1": (found("polarisation_deviation"), "0"),
            "sum of 2^k products − cos(Σa − c)": (found("expansion_deviation"), "0"),
        }
    )
