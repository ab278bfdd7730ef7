"""First gradients as pictures: how many lie in which cone, their cosines before and after, and their norms."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from .arms import SIGNS, Params, part

BINS = np.linspace(0, 1, 26)


@part.figure(
    "cones",
    caption="Share of first gradients in a cone around some feature of the XOR mixture, by the cone's width γ and the "
    "dimension: the curves coincide (exact gradients; both threshold signs agree, positive shown).",
    shows=("C1a", "X9"),
)
def cones(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("share_in_cones", arm="xor-gradients", labels="true", threshold_sign="positive")
    frame = charts.summarise(rows.with_columns(d=pl.format("d = {}", pl.col("dim"))), "d", "width")
    chart: alt.LayerChart = charts.band(frame, x="width", y="share of gradients in a cone", colour="d", domain=(0, 1))
    return chart


@part.figure(
    "turning",
    caption="Cosine of neurons with their nearest feature of the XOR mixture at the largest dimension: at the start, "
    "after one exact gradient, and after a gradient of random labels.",
    shows=("C1b", "N1", "X1"),
)
def turning(m: Measurements[Params]) -> alt.Chart:
    dim = m.params.xor_dims[-1]
    frames = []
    names = {"true": ("start", "gradient"), "shuffled": ("", "gradient of random labels")}
    for labels, titles in names.items():
        both = m.array("cosines positive", arm="xor-gradients", dim=dim, labels=labels)
        for at, title in enumerate(titles):
            if title:
                counts = np.histogram(both[:, at], BINS)[0] / both[:, at].size
                frames.append(pl.DataFrame({"which": title, "left": BINS[:-1], "right": BINS[1:], "share": counts}))
    chart: alt.Chart = (
        alt.Chart(pl.concat(frames), width=420, height=110)
        .mark_bar()
        .encode(
            x=alt.X("left:Q", bin="binned", title="cosine with the nearest feature"),
            x2="right:Q",
            y=alt.Y("share:Q", title="share"),
            row=alt.Row("which:N", title=None, sort=["start", "gradient", "gradient of random labels"]),
        )
    )
    return chart


@part.figure(
    "norms",
    caption="Norm of the first gradient against its cosine with the nearest feature (XOR mixture, largest dimension, "
    "one seed): with true labels some neurons pass the floor √d/5, with random labels none does, though many turn.",
    shows=("N1", "X1"),
)
def norms(m: Measurements[Params]) -> alt.LayerChart:
    dim = m.params.xor_dims[-1]
    frames = []
    for labels, title in {"true": "true labels", "shuffled": "random labels"}.items():
        where: dict[str, Any] = {"arm": "xor-gradients", "dim": dim, "labels": labels}
        cosine = m.array("cosines positive", **where)[0, 1]
        frames.append(pl.DataFrame({"labels": title, "cosine": cosine, "norm": m.array("norms positive", **where)[0]}))
    points = (
        alt.Chart(pl.concat(frames), width=380, height=260)
        .mark_point(size=12, opacity=0.5)
        .encode(
            x=alt.X("cosine:Q", title="cosine with the nearest feature"),
            y=alt.Y("norm:Q", title="norm of the gradient", scale=alt.Scale(type="log")),
            color=alt.Color("labels:N", title=None),
        )
    )
    chart: alt.LayerChart = points + charts.rules({"norm floor √d/5": float(np.sqrt(dim) / 5)}, width=380)
    return chart


@part.figure(
    "linear",
    caption="Linear data: how far the median gradient is from the true direction, by the threshold; neurons with "
    "negative thresholds come down to the sampling floor.",
    shows=("C4a", "C4b"),
)
def linear(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("off_negative", arm="linear"), "threshold_ratio")
    frame = frame.rename({"threshold_ratio": "threshold"}).with_columns(which=pl.lit("negative threshold"))
    floor = (m.params.linear_dim - 1) / (2 * m.params.linear_samples)
    curve = charts.band(frame, x="threshold", y="1 − cosine", colour="which")
    chart: alt.LayerChart = curve + charts.rules({"sampling floor": floor})
    return chart


@part.table(
    "interval-of-p",
    caption="Share p of neurons in the cone of the first feature (XOR mixture) with its Clopper–Pearson interval.",
    shows=("C1a",),
)
def interval_of_p(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for note in m.notes(arm="xor-gradients", labels="true"):
        for sign in SIGNS:
            low, high = note[f"interval of p, {sign} threshold"]
            rows.append({"dim": note["dim"], "threshold": sign, "low": round(low, 4), "high": round(high, 4)})
    return (
        pl.DataFrame(rows)
        .group_by("dim", "threshold", maintain_order=True)
        .agg(pl.col("low").min(), pl.col("high").max())
    )
