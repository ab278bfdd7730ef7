"""What one masked step adds to the growth of features, beside the printed rates."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from ..claims import power
from ..theory import printed_rates
from .arms import Params, part


@part.figure(
    "one-step",
    caption="What masking 1, 2, ... of the rare feature's neurons adds to the growth of the rare feature and of the "
    "others in a single step at the constructed state (mean and 95 % interval over seeds).",
    shows=("C5d", "C5f", "C5n"),
)
def one_step(m: Measurements[Params]) -> alt.HConcatChart:
    names = {"rare_boost": "rare feature", "other_boost": "other features"}
    rows = m.rows(list(names), arm="one-step", scale=1.0).with_columns(feature=pl.col("metric").replace_strict(names))
    parts = []
    for epsilon in m.params.pruned_rare:
        group = rows.filter(epsilon=epsilon)
        frame = charts.summarise(group.sort("feature", "pruned"), "feature", "pruned").rename(
            {"pruned": "pruned neurons"}
        )
        chart = charts.band(
            frame,
            x="pruned neurons",
            y="added growth per unit rate",
            colour="feature",
            width=190,
            height=200,
            title=f"ε = {epsilon:g}",
        )
        ticks = alt.Axis(values=list(range(1, m.params.per_feature + 1)), format="d")
        parts.append(chart.encode(x=alt.X("pruned neurons:Q", axis=ticks)))
    figure: alt.HConcatChart = alt.hconcat(*parts).resolve_scale(y="shared")
    return figure


@part.table(
    "one-step",
    caption="One step with all of the rare feature's neurons masked, at the constructed state with its weights scaled: "
    "what that adds to the growth of the rare feature and of the others (mean), per unit rate, beside the rates that "
    "Theorem 3.2 prints, ε²αC/d and ε³αC/d² with C = log log d (orders: only their course over ε compares). Exponent: "
    "of ε in the rare boost, from the row above to this one; printed 2.",
    shows=("C5d", "C5f", "C5o"),
)
def one_step_table(m: Measurements[Params]) -> pl.DataFrame:
    params = m.params
    d, count = params.pruned_majority + 1, params.per_feature
    rows: list[dict[str, Any]] = []
    for scale in (1.0, 0.2):
        seen: list[tuple[float, float]] = []
        for epsilon in params.pruned_rare:
            where = dict(arm="one-step", epsilon=epsilon, pruned=count, scale=scale)
            rare, other = (m.final(metric, **where) for metric in ("rare_boost", "other_boost"))
            printed = printed_rates(epsilon, 1 / d, d, 1.0, math.log(math.log(d)))
            seen.append((epsilon, float(rare.array.mean())))
            rows.append(
                {
                    "weights ×": scale,
                    "ε": epsilon,
                    "rare boost × 10³": charts.plus_minus(rare, 3, 1000),
                    "printed × 10³": f"{1000 * printed[0]:.3f}",
                    "exponent": f"{power(*np.array(seen[-2:]).T):.2f}" if len(seen) > 1 else "",
                    "others × 10³": charts.plus_minus(other, 3, 1000),
                    "others/rare": charts.plus_minus(other / rare, 4),
                    "printed ratio ε/d": f"{printed[1] / printed[0]:.4f}",
                }
            )
    return pl.DataFrame(rows)


@part.table(
    "gradient",
    caption="The mathematics of one step. Against automatic differentiation, for both attentions and all token modes: "
    "the gradient of InfoNCE and that with a mask, both relative to their largest entry; what a mask that hides "
    "nothing changes; and the mean gradient of masked neurons over the largest one of plain training (tokens that show "
    "every active feature). At the constructed state with small weights: by how much the change of the positives' "
    "softmax misses the first-order formula (weights × 0.03), and what masking three of the rare feature's neurons "
    "adds over what masking one does (weights × 0.2, smallest ε, mean over seeds with its 95 % interval). All others "
    "from the least to the largest seed and setting.",
    shows=("C1a", "C5a", "C5b", "C5c", "C5e", "N3"),
)
def gradient(m: Measurements[Params]) -> pl.DataFrame:
    where = dict(arm="one-step", epsilon=m.params.pruned_rare[0], scale=0.2)
    most = min(3, m.params.per_feature)
    boosts = [m.final("rare_boost", pruned=count, **where) for count in (1, most)]
    response = m.every("response_deviation", arm="one-step", scale=0.03)
    return charts.by_claim(
        [
            ("C1a", "|formula − autograd|", m.every("autograd_deviation", arm="gradient"), "0"),
            ("C5a", "|formula − autograd|, masked", m.every("masked_autograd_deviation", arm="gradient"), "0"),
            (
                "N3",
                "|difference| by a mask that hides nothing",
                m.every("trivial_mask_difference", arm="gradient"),
                "0",
            ),
            (
                "C5b",
                "gradient of masked neurons/largest of plain training",
                m.every("pruned_gradient", arm="gradient", token_mode="all"),
                "0.001 at least",
            ),
            ("C5c", "|change of softmax − first order|/|change|", response, "0.01 at most"),
            ("C5e", f"boost by {most} masked neurons/by one", boosts[1] / boosts[0], f"{most}"),
        ]
    )
