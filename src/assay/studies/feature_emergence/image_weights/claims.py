"""Claims about the first layer on two image classes: it moves early, and its weights cluster."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part


@part.claim(
    "C8a",
    "early training moves the first layer most: the first quarter of the epochs against the last",
    source="Figures 3 and 17 to 19, on the configured image set",
)
def early_movement(m: Measurements[Params]) -> Judgement:
    return m.final("early_over_late", arm="image-weights", start="standard").named("movement, early / late").above(1)


@part.claim(
    "C8b",
    "weights on two image classes cluster more after training (silhouette of two clusters)",
    source="Figures 3 and 17 to 19",
)
def weights_cluster(m: Measurements[Params]) -> Judgement:
    where = {"arm": "image-weights", "start": "standard"}
    return (m.final("silhouette", **where) - m.at("silhouette", 0, **where)).named("rise of the silhouette").above(0)


@part.claims_over(
    {"C8c": {"start": "standard", "words": "N(0, 1/d)"}, "C8d": {"start": "small", "words": "N(0, 0.01/d)"}},
    statement="from a Gaussian start {words} weights within a cluster agree (cos ≥ 0.5)",
    source="Figures 3 and 17 to 19; the scale of the start is not stated there",
)
def clusters_tight(m: Measurements[Params], *, start: str) -> Judgement:
    return m.final("within_cosine", arm="image-weights", start=start).at_least(0.5)
