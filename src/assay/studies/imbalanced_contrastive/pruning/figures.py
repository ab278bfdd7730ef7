"""Pruning from the constructed state: coefficients over the steps and at the end."""

from __future__ import annotations

from itertools import product

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "pruning",
    caption="From a constructed stage-three state, at the smallest weight decay λ of the run: the rare feature's mean "
    "coefficient (solid) and that of the frequent ones (dashed), above, and the share of the rare feature's neurons "
    "among the pruned, below (a running mean over five looks, since it oscillates).",
    shows=("C5g", "C5h", "C5i", "C5j", "C5l", "C6a", "C6b", "C6c", "C6e", "C6g", "N5"),
)
def pruning(m: Measurements[Params]) -> alt.VConcatChart:
    decay = m.params.pruned_decays[0]
    order = ["plain", "logit-masked", "straight-through"]
    rows = m.rows(["rare_coefficient", "frequent_coefficient"], arm="pruning", decay=decay).with_columns(
        kind=pl.when(pl.col("metric") == "rare_coefficient").then(pl.lit("rare")).otherwise(pl.lit("frequent"))
    )
    frame = charts.summarise(rows, "epsilon", "gradient", "kind", "step")
    share = charts.summarise(m.rows("pruned_rare_share", arm="pruning", decay=decay), "epsilon", "gradient", "step")
    share = share.sort("epsilon", "gradient", "step").with_columns(
        smooth=pl.col("mean").rolling_mean(5, min_samples=1).over("epsilon", "gradient")
    )
    colour = alt.Color("gradient:N", title=None, sort=order, scale=alt.Scale(domain=order))
    upper, lower = [], []
    for epsilon in m.params.pruned_rare:
        base = alt.Chart(frame.filter(epsilon=epsilon), width=210, height=200, title=f"ε = {epsilon:g}, λ = {decay:g}")
        dash = alt.StrokeDash("kind:N", title=None, sort=["rare", "frequent"], scale=alt.Scale(range=[[1, 0], [4, 3]]))
        y = alt.Y("mean:Q", title="mean coefficient")
        upper.append(base.mark_line().encode(x=alt.X("step:Q", title=None), y=y, color=colour, strokeDash=dash))
        below = alt.Chart(share.filter(epsilon=epsilon), width=210, height=110)
        y = alt.Y("smooth:Q", title="rare among pruned", scale=alt.Scale(domain=[0, 1]))
        lower.append(below.mark_line().encode(x=alt.X("step:Q", title="step"), y=y, color=colour))
    return alt.vconcat(alt.hconcat(*upper).resolve_scale(y="shared"), alt.hconcat(*lower))


@part.table(
    "pruning",
    caption="The constructed state at the end: rare and frequent coefficients and their ratio per frequency, weight "
    "decay and gradient (mean ± 95 % interval). Judge ratios: after equality all coefficients grow under pruning. Own "
    "neurons: those that have the rare feature and no other.",
    shows=("C6a", "C6b", "C6c", "C6d", "C6e", "C6h", "C6j"),
)
def pruning_table(m: Measurements[Params]) -> pl.DataFrame:
    columns = {
        "rare": "rare_coefficient",
        "frequent": "frequent_coefficient",
        "ratio": "ratio",
        "own neurons": "own_neurons",
    }
    kinds = ("plain", "logit-masked", "straight-through")
    rows = []
    for decay, epsilon, kind in product(m.params.pruned_decays, m.params.pruned_rare, kinds):
        where = dict(arm="pruning", decay=decay, epsilon=epsilon, gradient=kind)
        found = {title: charts.plus_minus(m.final(metric, **where)) for title, metric in columns.items()}
        rows.append({"λ": decay, "ε": epsilon, "gradient": kind, **found})
    return pl.DataFrame(rows)
