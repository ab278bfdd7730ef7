"""Block parities: accuracy by instance, and which block each neuron points at."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, Values, charts

from . import theory
from .arms import CASES, FEATURES, INSTANCES, KERNELS, Params, part


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
    shows=("C4g",),
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


@part.table(
    "parity-steps",
    caption="Parity of one block (d-k), by instance: the median neuron's cosine with the block after one gradient "
    "step, and the hinge loss of a head on random Fourier features beside the lower bound for as many fixed features "
    "and a head of that norm, 1/2 − √N·B/(2^k·√2), which says nothing where it is negative and is about the background "
    "1/2 alone (mean and half of the 95 % interval over seeds).",
    shows=("C1h", "C5n"),
)
def parity_steps(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for name in m.params.instances:
        where = {"arm": "parity", "instance": name}
        bounded = INSTANCES[name][2] == 0.5
        bound = m.final("loss_bound", method="fourier", **where)
        rows.append(
            {
                "d-k": name,
                "p_o": INSTANCES[name][2],
                "cosine with the block": charts.plus_minus(m.final("median_cosine", method="gradient", **where)),
                "hinge loss, Fourier": charts.plus_minus(m.final("hinge_loss", method="fourier", **where)),
                "lower bound": charts.plus_minus(bound) if bounded else "–",
            }
        )
    return pl.DataFrame(rows)


@part.table(
    "three-blocks",
    caption="Parities of three blocks of 5 coordinates after one step, in numbers: means over seeds with 95 % "
    "intervals in brackets. A neuron is near a block from a cosine of 0.9 on; the loud background has variance 18 "
    "where the plain one is nearly silent. The heads are tested on uniform inputs without structure.",
    shows=("C4d", "C4e", "C4f", "C4g", "C4h", "N5"),
)
def three_blocks(m: Measurements[Params]) -> pl.DataFrame:
    def gradients(metric: str, case: str = "plain", **where: str) -> Values:
        return m.final(metric, arm="block-gradients", case=case, **where)

    def near(sign: str, case: str = "plain") -> Values:
        return gradients("near", case, threshold_sign=sign)

    def accuracy(method: str) -> Values:
        return m.final("uniform_accuracy", arm="blocks", method=method)

    share = CASES["plain"][0].structured
    cosine = gradients("median_cosine", threshold_sign="negative")
    return charts.quantities(
        {
            "E[yφ], relevant coordinates": (gradients("label_mean"), f"2p_A = {2 * share:g} (printed: 0)"),
            "E[yφ], other coordinates": (gradients("label_mean_beside"), "0"),
            "near a block, positive threshold": (near("positive"), "some"),
            "the same, threshold raised by half": (near("positive", "higher threshold"), "fewer"),
            "the same, loud background": (near("positive", "loud background"), "at most 0.05"),
            "near a block, negative threshold": (near("negative"), "0"),
            "median cosine, negative threshold": (cosine, f"1/√3 = {3**-0.5:.4f}"),
            "accuracy of a head on gradient features": (accuracy("gradient"), "5 points above the next row"),
            "accuracy of a head on one true block": (accuracy("one block"), "–"),
        }
    )


@part.table(
    "parity-oracle",
    caption="The oracle network of block parities on every input of its blocks, by enumeration: its largest error, its "
    "largest output where the blocks are zero, and the norm of its outputs over the formula √(r(4k(k + 1) + 2k)) and "
    "over the printed one, 2√(rk(k + 1)). No seed has a part in these numbers.",
    shows=("C2a", "C2b"),
)
def parity_oracle(m: Measurements[Params]) -> pl.DataFrame:
    names = {
        "error": "largest error",
        "off_block": "output off the blocks",
        "norm_over_formula": "norm / formula",
        "norm_over_printed": "norm / printed",
    }
    rows = []
    points = m.rows("error", arm="parity-oracle").select("blocks", "size").unique(maintain_order=True)
    for blocks_, size in points.iter_rows():
        where = {"arm": "parity-oracle", "blocks": blocks_, "size": size}
        cells = {words: f"{m.exact(name, **where).value:.4g}" for name, words in names.items()}
        rows.append({"blocks r": blocks_, "size k": size, **cells})
    return pl.DataFrame(rows)
