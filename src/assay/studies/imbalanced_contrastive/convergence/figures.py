"""Rare features and the loss when training goes on, and identities of the loss."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "coefficients",
    caption="Training that goes on, from random weights without pruning (mean and 95 % interval over seeds). Left: "
    "rare over frequent coefficients; dotted: ε. By the printed scaling every curve should reach its dotted line and "
    "stay: look whether it is passed through. Right: how far the loss is above the floor of perfect neurons; by the "
    "theory it ends within the order 1/log d (dashed, with constant 1).",
    shows=("C3h", "C3o"),
)
def coefficients(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows("energy_ratio", arm="longer").with_columns(
        frequency=pl.col("epsilon").map_elements(lambda e: f"ε = {e:g}", return_dtype=pl.String)
    )
    frame = charts.summarise(rows.sort("epsilon", "step"), "frequency", "step")
    levels = rows.select("frequency", value=pl.col("epsilon")).unique().sort("value")
    rule = alt.Chart(levels).mark_rule(strokeDash=[2, 3]).encode(y="value:Q", color=alt.Color("frequency:N", sort=None))
    curves: alt.LayerChart = charts.band(frame, x="step", y="rare/frequent coefficient", colour="frequency", width=330)
    chart: alt.HConcatChart = alt.hconcat(curves + rule, _excess(m))
    return chart


def _excess(m: Measurements[Params]) -> alt.LayerChart:
    """The loss above the floor of perfect neurons."""
    rows = m.rows("loss_excess", arm="longer").with_columns(
        frequency=pl.col("epsilon").map_elements(lambda e: f"ε = {e:g}", return_dtype=pl.String)
    )
    frame = charts.summarise(rows.sort("epsilon", "step"), "frequency", "step")
    level = 1 / math.log(m.params.majority + m.params.minority)
    chart: alt.LayerChart = charts.band(frame, x="step", y="loss − floor", colour="frequency", width=280)
    figure: alt.LayerChart = chart + charts.rules({"1/log d": level, "floor": 0.0}, width=280)
    return figure


@part.table(
    "loss-identities",
    caption="Identities of the InfoNCE loss: with perfect neurons it stops at the floor E log(1 + N), where N counts "
    "the negatives that contain the anchor's features (mean over seeds with its 95 % interval); and the proofs' "
    "pseudo-loss L̃, whose gradient and value at the current weights are τ times those of the loss L, which is convex, "
    "and on which descent stays below the regret bound of online descent (least to largest seed).",
    shows=("C3i", "C3j", "C3m", "C3k"),
)
def loss_identities(m: Measurements[Params]) -> pl.DataFrame:
    floor = m.final("floor_loss", arm="loss-floor") / m.final("floor_formula", arm="loss-floor")
    where = dict(arm="pseudo-loss")
    return charts.by_claim(
        [
            ("C3i", "loss of perfect neurons/floor", floor, "1"),
            ("C3j", "|∇L̃/τ − ∇L|/|∇L|", m.every("pseudo_slope", **where), "0"),
            ("C3m", "|L̃/τ − L|", m.every("pseudo_value", **where), "0"),
            (
                "C3k",
                "L̃ half-way between two weights − its mean at both",
                m.every("pseudo_bend", **where),
                "0 at most",
            ),
            ("C3k", "regret/bound", m.every("pseudo_regret", **where), "1 at most"),
        ]
    )
