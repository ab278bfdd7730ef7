"""What contrastive training captures, what is left of the spurious state, and the identities behind both."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..theory import LOSSES
from .arms import GENERATIONS, Params, part


@part.table(
    "principal-components",
    caption="Finite hidden states sent through three maps to inputs. Share of the inputs' variance that is spurious; "
    "variance of the averaged inputs captured by two contrastively trained outputs and by two principal components of "
    "the raw inputs, as a share of the most that two outputs can capture.",
    shows=("C1b", "N1"),
)
def components_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for g in GENERATIONS:
        found = {
            words: charts.plus_minus(m.final(metric, arm="principal-components", generation=g))
            for metric, words in (
                ("spurious_variance", "spurious variance"),
                ("captured", "contrastive training"),
                ("captured_by_raw", "components of raw inputs"),
            )
        }
        rows.append({"x = g(z)": g, **found})
    return pl.DataFrame(rows)


@part.figure(
    "invariance",
    caption="Variance of trained tables over the spurious state, as a share of their norm², one mark per seed. Where "
    "the second view redraws the state, curved losses remove it; the hinge loss leaves what it cannot see. Where the "
    "view keeps the state, all losses encode it. Values below 1e-20 are drawn there.",
    shows=("C2c", "N3", "X1b"),
)
def invariance(m: Measurements[Params]) -> Any:
    rows = m.rows("variation", arm="invariance").with_columns(
        value=pl.col("value").clip(1e-20), view=pl.lit("second view ") + pl.col("view") + pl.lit(" z_U")
    )
    return (
        alt.Chart(rows, width=260, height=220)
        .mark_point(filled=True, opacity=0.6, size=45)
        .encode(
            x=alt.X("loss:N", title=None, axis=alt.Axis(labelAngle=0)),
            xOffset="norm:N",
            y=alt.Y("value:Q", title="variance over z_U / norm²", scale=alt.Scale(type="log")),
            color=alt.Color("norm:N", title="norm B"),
        )
        .facet(column=alt.Column("view:N", title=None, sort="descending"))
    )


@part.table(
    "identities",
    caption="Exact statements on random tables of representations in a finite model, by loss, from the least to the "
    "largest seed (each the worst of its tables). With ℓ(t) = −t the contrastive loss is minus the variance of the "
    "averages over augmentations. For convex losses: what averaging over the augmentations lowers the loss by, which "
    "is never negative; how far a representation that ignores them is from that bound; and what restoring the norm of "
    "the averages lowers it by further. Last, the control: by how much the loss of an encoder that varies with the "
    "spurious state differs from that of the invariant one; the hinge loss does not see it, the logistic one does.",
    shows=("C1a", "C2a", "C2b", "X1a", "N2"),
)
def identities(m: Measurements[Params]) -> pl.DataFrame:
    where = {"arm": "identities"}
    error = charts.measured(m.every("pca_error", **where))
    linear = {name: error if name == "linear" else "–" for name in LOSSES}
    rows = [{"claim": "C1a", "quantity": "|loss + variance of averages|", **linear, "expected": "0"}]
    for claim, metric, what, expected in (
        ("C2a", "jensen_gap", "loss − loss of the averages", "0 at least"),
        ("C2b", "blind_error", "|loss − bound| without augmentations", "0"),
        ("X1a", "repaired_gap", "loss of the averages − with their norm restored", "0 at least"),
        ("N2", "turned_loss", "|loss, varying − invariant|", "0.001 at least (logistic)"),
    ):
        found = {name: charts.measured(m.every(metric, loss=name, **where)) for name in LOSSES}
        rows.append({"claim": claim, "quantity": what, **found, "expected": expected})
    return pl.DataFrame(rows)
