"""The condition numbers beside those that the source prints."""

from __future__ import annotations

import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from ..convergence.theory import slope
from .arms import Params, part
from .theory import edge_condition, trial_means


@part.table(
    "condition-numbers",
    caption="Mean condition number of XᵀX for Gaussian X with its 95 % interval over seeds, the source's number (a "
    "mean of 10 trials), the 5–95 % band of such means, the share of them below the source's number, and the value "
    "from the edges of a large matrix's spectrum, which overestimates at d = 4.",
)
def condition_numbers(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for n in m.params.examples:
        printed = m.paper_value(examples=n, metric="condition") if m.params.dim == 4 else None
        means = trial_means(m.array("conditions", arm="condition-numbers", examples=n), m.params.trials)
        low, high = np.quantile(means, [0.05, 0.95])
        rows.append(
            {
                "n": n,
                "mean κ": charts.plus_minus(m.final("mean_condition", arm="condition-numbers", examples=n)),
                "paper κ": printed,
                "5–95 % of 10 trials": f"{low:.2f} to {high:.2f}",
                "share below paper": round(float((means < printed).mean()), 3) if printed else None,
                "spectrum edge": round(edge_condition(n, m.params.dim), 2),
                "asymptotic slope": round(slope(float(means.mean())), 3),
            }
        )
    return pl.DataFrame(rows)
