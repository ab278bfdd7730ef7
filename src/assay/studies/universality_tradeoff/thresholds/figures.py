"""Threshold curves."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl
from torch import Tensor

from assay.lab import Measurements, charts

from .arms import Params, part
from .theory import SEPARABLE, XOR, XOR_LABELS


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


@part.figure(
    "xor-layout",
    caption="The XOR layout on the unit circle, an optimum of the contrastive loss, and the same four vectors in "
    "another order, of equal loss: states (z₁, z₂), coloured by the label z₁. Solid: a best linear classifier without "
    "bias; dashed: one with a bias. On the XOR layout opposite points have the same label, so that every line through "
    "the middle is right on half of the states; with a bias it is right on three, and in the other order on all.",
    shows=("C4b", "C4c", "N4"),
)
def xor_layout(m: Measurements[Params]) -> Any:
    right = {name: m.exact(name, arm="xor").value for name in ("homogeneous", "affine", "separable")}
    # Lines as (ends, dashed): through the middle, and above it, where three states are right.
    through, above = ((-0.95, -0.95), (0.95, 0.95)), ((-1.15, 0.5), (1.15, 0.5))
    falling = ((-0.95, 0.95), (0.95, -0.95))
    layouts = (
        (XOR, f"XOR: right on {right['homogeneous']:.0%}, with a bias {right['affine']:.0%}", (through, above)),
        (SEPARABLE, f"in another order: right on {right['separable']:.0%}", (falling,)),
    )
    return alt.hconcat(*(_circle(points, title, lines) for points, title, lines in layouts))


def _circle(points: Tensor, title: str, lines: tuple[tuple[tuple[float, float], ...], ...]) -> Any:
    scale = alt.Scale(domain=[-1.4, 1.4], nice=False)
    x, y = (alt.X("x:Q", title="φ₁", scale=scale), alt.Y("y:Q", title="φ₂", scale=scale))
    turns = [2 * math.pi * k / 90 for k in range(91)]
    around = [{"x": math.cos(turn), "y": math.sin(turn), "order": k} for k, turn in enumerate(turns)]
    states = ("(−1, −1)", "(−1, 1)", "(1, −1)", "(1, 1)")
    rows = [
        {"x": float(a), "y": float(b), "state": state, "label": f"z₁ = {'−1' if label < 0 else '1'}"}
        for (a, b), state, label in zip(points.tolist(), states, XOR_LABELS.tolist(), strict=True)
    ]
    base = alt.Chart(pl.DataFrame(rows)).encode(x=x, y=y)
    order = alt.Order("order:Q")
    parts = [
        alt.Chart(pl.DataFrame(around), title=title, width=240, height=240).mark_line(color="#cccccc", strokeWidth=1)
    ]
    parts = [parts[0].encode(x=x, y=y, order=order)]
    for place, ends in enumerate(lines):
        frame = pl.DataFrame([{"x": a, "y": b} for a, b in ends])
        parts.append(alt.Chart(frame).mark_line(color="black", strokeDash=[5, 4] if place else [1, 0]).encode(x=x, y=y))
    parts.append(base.mark_point(filled=True, size=130, opacity=1).encode(color=alt.Color("label:N", title=None)))
    parts.append(base.mark_text(dy=-13, fontSize=12).encode(text="state:N"))
    return alt.layer(*parts)


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
