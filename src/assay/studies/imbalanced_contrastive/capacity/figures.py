"""Neurons of a feature's own: after training over the width, and among random ones."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts
from assay.methods.neuron_sets import required_width

from ..figures import against_frequency
from .arms import Params, part


@part.figure(
    "capacity",
    caption="After training, over the width: share of rare features that have a lucky neuron of their own (left), "
    "number of lucky neurons per rare feature (middle) and mean number of features per neuron, cos² ≥ 0.1 (right).",
    shows=("C4d", "C4e", "C4f", "C4g"),
)
def capacity(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows(["covered", "lucky_per_rare", "features_per_neuron"], arm="widths").with_columns(
        frequency=pl.col("epsilon").map_elements(lambda e: f"ε = {e:g}", return_dtype=pl.String)
    )
    parts = []
    for metric, title, domain in (
        ("covered", "rare features with a neuron", (0.0, 1.0)),
        ("lucky_per_rare", "lucky neurons per rare feature", None),
        ("features_per_neuron", "features per neuron", None),
    ):
        frame = charts.summarise(rows.filter(metric=metric).sort("epsilon", "neurons"), "frequency", "neurons")
        chart = charts.band(frame, x="neurons", y=title, colour="frequency", domain=domain, width=230, height=230)
        ticks = alt.Axis(values=list(m.params.widths))
        parts.append(chart.encode(x=alt.X("neurons:Q", scale=alt.Scale(type="log", nice=False), axis=ticks)))
    return alt.hconcat(*parts)


@part.figure(
    "set-energy",
    caption="Energy of a feature in its own neurons (𝔉_j, squared projections summed over the set 𝓜_j of the start) "
    "after training the widest network: that of rare features over that of frequent ones, against the frequency ε "
    "(mean and 95 % interval over seeds). By the theory it is ε² (solid grey) within constants (dashed: a factor 4).",
    shows=("C3p",),
)
def set_energy(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("set_energy_ratio", arm="widths", neurons=m.params.widths[-1])
    return against_frequency(rows, "energy in own neurons, rare/frequent", exponent=2, factor=4)


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
