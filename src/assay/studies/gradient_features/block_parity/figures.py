"""Block parities: accuracy by instance, and which block each neuron points at."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from . import theory
from .arms import FEATURES, INSTANCES, KERNELS, Params, part


@part.table(
    "parity",
    caption="Parity of one block (d-k): accuracy on uniform inputs of heads on gradient features, on as many fixed "
    "ones, and of exact kernels; beside it what the linear majority rule reaches.",
    shows=("C5g", "C5h", "C5i", "C5j", "C5k", "C5l", "C5m", "X3"),
)
def parity(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for name in m.params.instances:
        row: dict[str, str | float] = {
            "d-k": name,
            "p_o": INSTANCES[name][2],
            "majority rule": round(theory.majority_accuracy(INSTANCES[name][1]), 3),
        }
        for method in FEATURES:
            row[method] = charts.plus_minus(m.final("uniform_accuracy", arm="parity", instance=name, method=method))
        for method in KERNELS:
            where = {"arm": "parity-kernels", "instance": name, "method": method}
            there = name in m.params.kernel_instances
            row[method] = charts.plus_minus(m.final("uniform_accuracy", **where)) if there else "–"
        rows.append(row)
    return pl.DataFrame(rows)


@part.figure(
    "blocks",
    caption="Three blocks: cosine of each neuron with its nearest block after one step, by the sign of its threshold "
    "(all seeds). Negative thresholds see the sum of the blocks (1/√3).",
    shows=("C4e", "C4f", "C4g"),
)
def blocks(m: Measurements[Params]) -> alt.LayerChart:
    found = np.abs(m.array("cosines", arm="block-gradients", case="plain")).max(-1)
    half, bins = found.shape[1] // 2, np.linspace(0, 1, 31)
    frames = []
    for name, values in (("positive threshold", found[:, :half]), ("negative threshold", found[:, half:])):
        share = np.histogram(values, bins)[0] / values.size
        frames.append(pl.DataFrame({"which": name, "left": bins[:-1], "right": bins[1:], "share": share}))
    bars = (
        alt.Chart(pl.concat(frames), width=420, height=220)
        .mark_bar(opacity=0.6)
        .encode(
            x=alt.X("left:Q", bin="binned", title="cosine with the nearest block"),
            x2="right:Q",
            y=alt.Y("share:Q", title="share of neurons", stack=None),
            color=alt.Color("which:N", title=None),
        )
    )
    line = alt.Chart(pl.DataFrame({"x": [3**-0.5]})).mark_rule(strokeDash=[3, 3]).encode(x="x:Q")
    chart: alt.LayerChart = bars + line
    return chart


@part.figure(
    "neurons-by-block",
    caption="Cosine of single neurons with each of three blocks after one step (one seed; neurons with a positive "
    "threshold, sorted by the block that they are nearest to).",
    shows=("C4g", "C4h"),
)
def neurons_by_block(m: Measurements[Params]) -> alt.Chart:
    found = m.array("cosines", arm="block-gradients", case="plain")[0]
    found = np.abs(found[: len(found) // 2])
    order = np.lexsort((-found.max(1), found.argmax(1)))
    rows = [
        {"neuron": at, "block": block + 1, "cosine": float(found[i, block])}
        for at, i in enumerate(order.tolist())
        for block in range(found.shape[1])
    ]
    chart: alt.Chart = (
        alt.Chart(pl.DataFrame(rows), width=520, height=90)
        .mark_rect()
        .encode(
            x=alt.X("neuron:O", title="neurons", axis=alt.Axis(labels=False, ticks=False)),
            y=alt.Y("block:O", title="block"),
            color=alt.Color("cosine:Q", title="|cosine|", scale=alt.Scale(scheme="viridis", domain=[0, 1])),
        )
    )
    return chart
