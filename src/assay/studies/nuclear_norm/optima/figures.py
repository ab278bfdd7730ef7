"""Weights of both kinds of features against γ and r, under weight decay and under the nuclear norm."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from . import theory
from .arms import VANISHING, Params, part

DECAY, STRENGTH = 1.0, 0.03


@part.figure(
    "weights",
    caption="Left: weight of invariant over environmental features under weight decay 1, against γ; the ratio of means "
    "1/(2γ) goes through all points, far below the bound 3/(4γ). Right: weight of environmental over invariant "
    "features under the nuclear norm (strength 0.03): zero up to a threshold near ½ that rises with r (upright lines).",
    shows=("C5b", "X1", "C8a", "X3"),
)
def weights(m: Measurements[Params]) -> Any:
    order = [f"r = {r}" for r in m.params.invariants]
    colour = alt.Color("features:N", title="invariant", sort=order)
    decayed = _points(m, "decayed", "share_of_means", decay=DECAY).with_columns(
        ratio=pl.col("mean") / (2 * pl.col("gamma"))
    )
    grid = np.linspace(min(m.params.gammas), 0.49, 60)
    curves = pl.DataFrame(
        [{"gamma": g, "ratio": c / g, "line": name} for name, c in (("1/(2γ)", 0.5), ("3/(4γ)", 0.75)) for g in grid]
    )
    height = alt.Y("ratio:Q", title="α/β under weight decay", scale=alt.Scale(zero=False))
    across = alt.X("gamma:Q", title="γ", scale=alt.Scale(zero=False))
    lines = alt.Chart(curves, width=290, height=250).mark_line(color="#888")
    left = lines.encode(x=across, y=height, strokeDash=alt.StrokeDash("line:N", title=None))
    dots = alt.Chart(decayed).mark_point(filled=True, size=60).encode(x=across, y=height, color=colour)
    penalised = _points(m, "penalised", "beta_share", strength=STRENGTH)
    limits = pl.DataFrame([{"gamma": theory.threshold(r), "features": f"r = {r}"} for r in m.params.invariants])
    right = alt.Chart(penalised, width=290, height=250).mark_line(point=True)
    share = alt.Y("mean:Q", title="β/α under the nuclear norm")
    upright = alt.Chart(limits).mark_rule(strokeDash=[3, 3]).encode(x="gamma:Q", color=colour)
    return alt.hconcat(left + dots, right.encode(x=across, y=share, color=colour) + upright)


def _points(m: Measurements[Params], arm: str, metric: str, **where: float) -> pl.DataFrame:
    frame = charts.summarise(m.rows(metric, arm=arm, **where), "invariant", "gamma")
    return frame.with_columns(features=pl.format("r = {}", "invariant"))


@part.table(
    "optima",
    caption="Population optima at the least dimension that the theory allows. Weight decay 1: weights, their ratio "
    "beside 1/(2γ) and 3/(4γ), and log₁₀ of the accuracy outside (an upper bound from exact cumulants, the Gaussian "
    "estimate, and the promised e^(−r/10)). The Gaussian estimate is too low by many orders: tails of sums of uniform "
    "features are not Gaussian that far out. Nuclear norm 0.03: β/α and a lower bound on the accuracy outside.",
    shows=("C5a", "C5b", "X1", "C7b", "C8a", "X3"),
)
def optima(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for r in m.params.invariants:
        for gamma in m.params.legal(r):
            at = {"arm": "decayed", "invariant": r, "gamma": gamma}
            found = {
                name: m.exact(name, decay=DECAY, **at).value
                for name in ("alpha", "beta", "share_of_means", "log10_accuracy", "log10_gaussian")
            }
            under = {"arm": "penalised", "invariant": r, "gamma": gamma, "strength": STRENGTH}
            rows.append(
                {
                    "r": r,
                    "γ": gamma,
                    "d": int(m.exact("dim", decay=None, **at).value),
                    "α": f"{found['alpha']:.5f}",
                    "β": f"{found['beta']:.5f}",
                    "α/β": round(found["share_of_means"] / (2 * gamma), 3),
                    "1/(2γ)": round(1 / (2 * gamma), 3),
                    "3/(4γ)": round(3 / (4 * gamma), 3),
                    "bound": round(found["log10_accuracy"], 1),
                    "Gaussian": round(found["log10_gaussian"], 1),
                    "promised": round(-r / 10 / np.log(10), 1),
                    "β/α, norm": round(m.exact("beta_share", **under).value, 3),
                    "accuracy, norm": round(m.exact("least_accuracy", **under).value, 3),
                }
            )
    return pl.DataFrame(rows)


@part.table(
    "supports",
    caption="The least loss of a network that may use so many features, by how many of them are invariant (γ is the "
    "largest of the grid, where the kinds differ least): it falls with each exchange.",
    shows=("C6a", "C7a"),
)
def supports(m: Measurements[Params]) -> pl.DataFrame:
    gamma = max(m.params.gammas)
    rows = charts.summarise(m.rows("loss", arm="supports", gamma=gamma), "size", "invariant_used")
    wide = rows.with_columns(pl.col("mean").round(4), used=pl.format("{} invariant", "invariant_used"))
    return wide.select("size", "used", "mean").pivot(on="used", index="size").sort("size")


@part.table(
    "optima-bounds",
    caption="What else is said of the population optima, from the least to the largest instance (no seed has a part in "
    "these numbers). Vanishing weight decay, 10⁻⁶, with one or two invariant features: their weight over that of "
    "environmental ones, as a share of 3/(4γ). No weight decay: the loss of the rank-limited network at weights of "
    "1,000; it goes to 0 as weights grow, so that none are optimal. The proof of the out-of-domain bound: its squared "
    "ranges over the corrected 5(d − r), which they must not exceed, and over the printed 4d. Fewer invariant features "
    "than the theory asks (10 or 4): the weight of environmental features under the nuclear norm over that of "
    "invariant ones.",
    shows=("X2", "C6b", "C7c", "C8b"),
)
def optima_bounds(m: Measurements[Params]) -> pl.DataFrame:
    printed = m.every("printed_ranges_share", arm="decayed")
    return charts.by_claim(
        [
            ("X2", "α/β over 3/(4γ)", m.every("share_of_bound", arm="vanishing", decay=min(VANISHING)), "1 at least"),
            ("C6b", "loss at weights of 1,000", m.every("unbounded_loss", arm="supports"), "0.001 at most"),
            ("C7c", "Σ(b − a)²/(5(d − r))", m.every("ranges_share", arm="decayed"), "1 at most"),
            ("C7c", "Σ(b − a)²/(4d), as printed", printed, "1 at most, as printed"),
            ("C8b", "β/α under the nuclear norm", m.every("beta_share", arm="penalised-outside"), "0"),
        ]
    )
