"""Claims about the first layer on two image classes: it moves early, and its weights cluster."""

from __future__ import annotations

import polars as pl

from assay.lab import Judgement, Measurements

from .arms import Params, part


@part.claim(
    "C8a",
    "On two image classes the first layer moves more in the first quarter of the epochs than in all others together.",
    source="Figures 3 and 17 to 19, on the configured image set",
)
def early_movement(m: Measurements[Params]) -> Judgement:
    early = m.params.image_epochs // 4

    def share(curve: pl.DataFrame) -> float:
        return float(curve.filter(pl.col("step") <= early)["value"].sum()) / float(curve["value"].sum())

    curve = m.curve("movement", arm="image-weights", start="standard")
    return m.per_seed(curve, share, "movement in the first quarter, share of all").above(0.5)


@part.claim(
    "C8b",
    "First-layer weights on two image classes form clearer clusters after training than before (silhouette of two).",
    source="Figures 3 and 17 to 19",
)
def weights_cluster(m: Measurements[Params]) -> Judgement:
    where = {"arm": "image-weights", "start": "standard"}
    return (m.final("silhouette", **where) - m.at("silhouette", 0, **where)).named("rise of the silhouette").above(0)


@part.claims_over(
    {
        "C8c": {"start": "standard", "words": "a standard Gaussian start, N(0, 1/d)"},
        "C8d": {"start": "small", "words": "a ten times smaller Gaussian start"},
    },
    statement="From {words}, weights on two image classes form two clusters that are tight (mean cosine at least 0.5).",
    source="Figures 3 and 17 to 19; the scale of the start is not stated there",
)
def clusters_tight(m: Measurements[Params], *, start: str) -> Judgement:
    return m.final("within_cosine", arm="image-weights", start=start).at_least(0.5)
