"""Threshold curves."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "thresholds",
    caption="Left: distance between the two states that differ in the rare feature only, after training, against the "
    "norm of the representation; dashed lines are the exact thresholds B₂(q). Right: the thresholds against the "
    "probability 2q² that two draws differ in this feature alone, and the norm from which on the source's construction "
    "lowers the loss.",
    shows=("C3a", "C3b", "C3c", "C3d"),
)
def thresholds(m: Measurements[Params]) -> Any:
    norms = m.rows("norm", arm="thresholds").select("seed", "share", "multiple", radius="value")
    rows = m.rows("separation", arm="thresholds").join(norms, on=["seed", "share", "multiple"])
    frame = charts.summarise(rows, "share", "radius").with_columns(q=pl.format("q = {}", "share"))
    order = [f"q = {q}" for q in m.params.rare_shares]
    colour = alt.Color("q:N", title=None, sort=order)
    curves = alt.Chart(frame, width=360, height=260).mark_line(point=True)
    left = curves.encode(
        x=alt.X("radius:Q", title="norm B"), y=alt.Y("mean:Q", title="distance of the rare states / B"), color=colour
    )
    exact = m.rows("threshold", arm="thresholds").unique("share").with_columns(q=pl.format("q = {}", "share"))
    lines = alt.Chart(exact).mark_rule(strokeDash=[4, 3]).encode(x="value:Q", color=colour)
    names = {"threshold": "exact, B₂(q)", "construction": "the source's construction"}
    both = m.rows(list(names), arm="thresholds").unique(["share", "metric"], maintain_order=True)
    both = both.with_columns(alone=2 * pl.col("share") ** 2, what=pl.col("metric").replace_strict(names))
    right = (
        alt.Chart(both, width=260, height=260)
        .mark_line(point=True)
        .encode(
            x=alt.X("alone:Q", title="probability that only this feature differs, 2q²"),
            y=alt.Y("value:Q", title="norm", scale=alt.Scale(zero=True)),
            color=alt.Color("what:N", title=None, scale=alt.Scale(scheme="dark2")),
        )
    )
    return alt.hconcat(left + lines, right).resolve_scale(color="independent")


@part.table(
    "xor",
    caption="Four even states as unit vectors of the plane: two layouts with the same, lowest, contrastive loss. The "
    "label is one of the two features; accuracies are those of the best linear classifier.",
    shows=("C4a", "C4b", "C4c", "N4"),
)
def xor(m: Measurements[Params]) -> pl.DataFrame:
    best = float(m.final("best_of_starts", arm="xor").array.min())
    accuracy = {name: m.exact(name, arm="xor").value for name in ("homogeneous", "affine", "separable")}
    return pl.DataFrame(
        [
            {"layout": "XOR", "without bias": accuracy["homogeneous"], "with bias": accuracy["affine"]},
            {"layout": "in order", "without bias": accuracy["separable"], "with bias": accuracy["separable"]},
        ]
    ).with_columns(pl.lit(f"{best:.1e}").alias("best loss of all starts − this"))
