"""Long-tailed images: accuracy and the gap between head and tail, beside the source's Table 2."""

from __future__ import annotations

from itertools import product

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "images",
    caption="Long-tailed images: probe accuracy (left) and head–tail gap Δ₂₀ (right) with and without pruning, every "
    "seed a dot, means as bars.",
    shows=("C8a", "C8b", "C8c", "C8d", "C8h"),
)
def images(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows(["accuracy", "gap"], arm="images").with_columns(
        ratio=pl.col("imbalance").map_elements(lambda r: f"ρ = {r:g}", return_dtype=pl.String)
    )
    order = ["none", "logit-masked", "self-competitor"]
    parts = []
    for metric, title in (("accuracy", "probe accuracy"), ("gap", "gap, head − tail")):
        base = alt.Chart(rows.filter(metric=metric)).encode(
            x=alt.X("pruning:N", sort=order, title=None, axis=alt.Axis(labelAngle=-30)),
            color=alt.Color("pruning:N", sort=order, legend=None),
        )
        y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False))
        dots = base.mark_point(filled=True, opacity=0.6, size=40).encode(y=y)
        bars = base.mark_tick(thickness=3, size=26).encode(y=alt.Y("mean(value):Q", title=title))
        layered = alt.layer(dots, bars).properties(width=130, height=220)
        parts.append(layered.facet(alt.Facet("ratio:N", title=None, sort=None)))
    return alt.hconcat(*parts)


@part.table(
    "images",
    caption="Table 2 in small: probe accuracy and Δ₂₀ in percent (95 % interval over seeds), with the source's "
    "CIFAR-10-LT numbers at the same ρ beside them. Data, network and epochs differ from the source's. "
    "Masked: the share of weights that the forward pass left out; loss: of the last epoch, with the mask.",
    shows=("C8a", "C8b", "C8c", "C8d", "C8h", "N6"),
)
def images_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for imbalance, pruning in product(m.params.image_ratios, ("none", "logit-masked", "self-competitor")):
        where = dict(arm="images", pruning=pruning, imbalance=imbalance)
        # The source has two conditions; the self-competitor has no row in its table.
        kind = {"none": "none", "logit-masked": "pruned"}.get(pruning, "no row")
        printed = dict(data="CIFAR10-LT", imbalance=int(imbalance), pruning=kind)
        rows.append(
            {
                "images": m.params.images,
                "ρ": f"{imbalance:g}",
                "pruning": pruning,
                "training images": round(float(m.final("images", **where).array.mean())),
                "accuracy %": charts.plus_minus(m.final("accuracy", **where), 2, 100),
                "paper accuracy": m.paper_value(metric="accuracy", **printed),
                "Δ₂₀ %": charts.plus_minus(m.final("gap", **where), 2, 100),
                "paper Δ₂₀": m.paper_value(metric="gap", **printed),
                "untrained %": charts.plus_minus(m.final("untrained_accuracy", **where), 2, 100),
                "masked %": round(100 * float(m.final("masked", **where).array.mean()), 1),
                "loss": charts.plus_minus(m.final("loss", **where), 2),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


@part.table(
    "image-tuning",
    caption="What rate and share of masked weights were chosen by (arm image-tuning, run by request): accuracy in "
    "percent of a linear probe on images kept for it, pretraining on tuning seeds at the smallest ρ above 1.",
)
def tuning_table(m: Measurements[Params]) -> pl.DataFrame:
    points = m.rows("validation_accuracy", arm="image-tuning").select("pruning", "setting_tried")
    rows = []
    for pruning, tried in points.unique(maintain_order=True).iter_rows():
        where = dict(arm="image-tuning", pruning=pruning, setting_tried=tried)
        found = charts.plus_minus(m.final("validation_accuracy", **where), 2, 100)
        rows.append({"images": m.params.images, "pruning": pruning, "tried": tried, "accuracy %": found})
    return pl.DataFrame(rows)
