"""Neurons of a feature's own: after training over the width, and among random ones."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts
from assay.methods.neuron_sets import required_width

from .arms import Params, part


@part.figure(
    "capacity",
    caption="Share of rare features that have a lucky neuron of their own (left) and mean number of features per "
    "neuron, cos² ≥ 0.1 (right), over the width, after training.",
    shows=("C4e", "C4f", "C4g"),
)
def capacity(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows(["covered", "features_per_neuron"], arm="widths").with_columns(
        frequency=pl.col("epsilon").map_elements(lambda e: f"ε = {e:g}", return_dtype=pl.String)
    )
    parts = []
    for metric, title, domain in (
        ("covered", "rare features with a neuron", (0.0, 1.0)),
        ("features_per_neuron", "features per neuron", None),
    ):
        frame = charts.summarise(rows.filter(metric=metric).sort("epsilon", "neurons"), "frequency", "neurons")
        chart = charts.band(frame, x="neurons", y=title, colour="frequency", domain=domain, width=270, height=230)
        ticks = alt.Axis(values=list(m.params.widths))
        parts.append(chart.encode(x=alt.X("neurons:Q", scale=alt.Scale(type="log", nice=False), axis=ticks)))
    return alt.hconcat(*parts)


@part.table(
    "neuron-sets",
    caption="Shares of random neurons in 𝓜_j and 𝓜*_j (γ = 0.1): counted, exact, for 𝓜*_j also as if features were "
    "independent, and the printed orders. Under imbalance the printed lucky bound is too large by orders of magnitude. "
    "Width: neurons needed for one lucky neuron per feature, exact and printed.",
    shows=("C4a", "C4b", "C4c", "C4h"),
)
def neuron_sets(m: Measurements[Params]) -> pl.DataFrame:
    columns = {
        "𝓜 counted": "ordinary",
        "𝓜 exact": "exact_ordinary",
        "𝓜 printed": "printed_ordinary",
        "𝓜* counted": "lucky",
        "𝓜* exact": "exact_lucky",
        "𝓜* independent": "independent_lucky",
        "𝓜* printed": "printed_lucky",
        "features per neuron": "features_per_neuron",
    }
    rows = []
    points = m.rows("ordinary", arm="neuron-sets").select("features", "ratio").unique().sort("features", "ratio")
    for d, r in points.iter_rows():
        where = dict(arm="neuron-sets", features=d, ratio=r)
        found = {name: float(m.final(metric, **where).array.mean()) for name, metric in columns.items()}
        found |= {"width": required_width(d, r), "printed width": required_width(d, r, exact=False)}
        rows.append({"d": d, "r": r, **{name: float(f"{value:.3g}") for name, value in found.items()}})
    return pl.DataFrame(rows)
