"""The condition numbers beside those that the source prints, and their course over the dimension."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from ..convergence.theory import slope
from .arms import Params, part
from .theory import edge_condition, mean_condition, trial_means

_BLUE = "#3366aa"


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


@part.figure(
    "dimensions",
    caption="Mean condition number of XᵀX for Gaussian X with a fixed number of examples per dimension, n/d, against "
    "the dimension d (mean and 95 % interval over seeds, small as the dots). It grows towards the limit of "
    "large matrices, ((1 + √(d/n))/(1 − √(d/n)))² (dashed), and stays below it in every dimension, so that the number "
    "of loops need not grow with d.",
    shows=("C5j",),
)
def dimensions(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("mean_condition", arm="dimensions"), "width")
    scale, ticks = alt.Scale(type="log", nice=False, padding=15), alt.Axis(values=list(m.params.dims))
    base = alt.Chart(frame, width=380, height=230, title=f"n = {m.params.ratio}d").encode(
        x=alt.X("width:Q", title="dimension d", scale=scale, axis=ticks)
    )
    limit = float(m.rows("edge", arm="dimensions")["value"].to_numpy().max())
    extent = alt.Scale(domain=[1, 1.1 * max(limit, *frame["high"])], zero=False, nice=False)
    y = alt.Y("low:Q", title="mean condition number κ", scale=extent)
    bars = base.mark_rule(strokeWidth=3, color=_BLUE).encode(y=y, y2="high:Q")
    line = base.mark_line(point=True, color=_BLUE).encode(y="mean:Q")
    return alt.LayerChart(layer=[charts.rules({f"limit {limit:.2f}": limit}, width=380), line, bars])
