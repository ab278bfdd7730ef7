"""Polynomials of three directions over the number of samples."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import KERNELS, Params, part
from .theory import noise_fraction


@part.figure(
    "multi-index",
    caption="Polynomial of three directions over n/d², with and without its quadratic part: share of the first "
    "gradients' norm in their span, and of the weights' at the start (left); how far the span of the three strongest "
    "directions of all gradients is the true one, the mean squared cosine of their principal angles (middle); squared "
    "error of heads (right).",
    shows=("C1i", "C4q", "C5q", "N6", "N7", "X5"),
)
def multi_index(m: Measurements[Params]) -> alt.HConcatChart:
    fractions = charts.summarise(m.rows("fraction", arm="multi-index"), "target", "ratio").rename({"ratio": "n/d²"})
    start = float(m.rows("fraction_before", arm="multi-index", target="full")["value"].to_numpy().mean())
    levels = {"sampling noise, no quadratic part": noise_fraction(m.params.index_dim), "weights at the start": start}
    left = charts.band(fractions, x="n/d²", y="share of the norm", colour="target", width=220)
    left += charts.rules(levels, width=220)
    angles = charts.summarise(m.rows("top_alignment", arm="multi-index"), "target", "ratio").rename({"ratio": "n/d²"})
    middle = charts.band(angles, x="n/d²", y="squared cosine", colour="target", width=220, domain=(0, 1))
    errors = charts.summarise(m.rows("error", arm="multi-index"), "target", "method", "ratio")
    errors = errors.rename({"ratio": "n/d²"})
    right = charts.band(errors, x="n/d²", y="squared error", colour="target", dash="method", width=220)
    return alt.hconcat(left, middle, right)


@part.table(
    "multi-index-kernels",
    caption="Polynomial of three directions at d² samples: squared error of exact kernels, random and gradient "
    "features, all tuned alike.",
    shows=("C5r",),
)
def kernels(m: Measurements[Params]) -> pl.DataFrame:
    rows = [
        {
            "method": f"{name} kernel",
            "error": charts.plus_minus(m.final("error", arm="multi-index-kernels", method=name)),
        }
        for name in KERNELS
    ]
    for method, title in (("relu", "random ReLU features"), ("gradient", "gradient features")):
        found = m.final("error", arm="multi-index", target="full", ratio=1.0, method=method)
        rows.append({"method": title, "error": charts.plus_minus(found)})
    return pl.DataFrame(rows)
