"""The condition numbers beside those that the source prints."""

from __future__ import annotations

import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from ..convergence.theory import slope
from .arms import Params, part
from .theory import edge_condition, mean_condition, trial_means


@part.table(
    "condition-numbers",
    caption="Mean condition number of XᵀX for Gaussian X with its 95 % interval over seeds, its exact value at d = 4, "
    "the source's number (a mean of 10 trials), the 5–95 % band of means over few trials, the share of them below the "
    "source's number, and the value from the edges of a large matrix's spectrum, which overestimates at d = 4.",
    shows=("C5a", "C5b", "C5c", "C5d", "C5e", "C5f", "C5g", "C5h", "C5i"),
)
def condition_numbers(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    few, in_source = m.params.trials, m.params.dim == 4
    for n in m.params.examples:
        printed = m.paper_value(examples=n, metric="condition") if in_source else None
        means = trial_means(m.array("conditions", arm="condition-numbers", examples=n), few)
        low, high = np.quantile(means, [0.05, 0.95])
        rows.append(
            {
                "n": n,
                "mean κ": charts.plus_minus(m.final("mean_condition", arm="condition-numbers", examples=n)),
                "exact κ": round(mean_condition(n, 4), 3) if in_source else None,
                "paper κ": printed,
                f"5–95 % of {few} trials": f"{low:.2f} to {high:.2f}",
                "share below paper": round(float((means < printed).mean()), 3) if printed else None,
                "spectrum edge": round(edge_condition(n, m.params.dim), 2),
                "asymptotic slope": round(slope(float(means.mean())), 3),
            }
        )
    return pl.DataFrame(rows)
