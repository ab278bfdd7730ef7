"""The claims on real images (C8) and their control."""

from __future__ import annotations

import polars as pl

from assay.lab import Judgement, Measurements, Values
from assay.methods.input_replacement import first_local_minimum

from .study import study


@study.claim(
    "C8a",
    "early training moves the first layer most: the first quarter of the epochs against the last",
    source="Figures 3 and 17 to 19, on the configured image set",
)
def early_movement(m: Measurements) -> Judgement:
    return m.final("early_over_late", arm="image-weights", start="standard").named("movement, early / late").above(1)


@study.claim(
    "C8b",
    "weights on two image classes cluster more after training (silhouette of two clusters)",
    source="Figures 3 and 17 to 19",
)
def weights_cluster(m: Measurements) -> Judgement:
    where = {"arm": "image-weights", "start": "standard"}
    return (m.final("silhouette", **where) - m.at("silhouette", 0, **where)).named("rise of the silhouette").above(0)


for _letter, _start, _words in (("c", "standard", "N(0, 1/d)"), ("d", "small", "N(0, 0.01/d)")):

    @study.claim(
        f"C8{_letter}",
        f"from a Gaussian start {_words} weights within a cluster agree (cos ≥ 0.5)",
        source="Figures 3 and 17 to 19; the scale of the start is not stated there",
    )
    def clusters_tight(m: Measurements, start: str = _start) -> Judgement:
        return m.final("within_cosine", arm="image-weights", start=start).at_least(0.5)


def _injected(m: Measurements, part: str, fraction: float = 0.5, width: int = 50) -> Values:
    return m.area("part_accuracy", arm="injected-inputs", width=width, fraction=fraction, part=part)


@study.claim(
    "C8e",
    "labels on Gaussian inputs are learned slower than on images (area under accuracy, m = 50)",
    source="Figures 4 and 22 to 25, FC networks on the configured image set",
)
def injected_slower(m: Measurements) -> Judgement:
    return (_injected(m, "original") - _injected(m, "injected")).named("original − injected part").at_least(0.03)


@study.claim(
    "C8f",
    "the original part is learned about as fast as without injected inputs (within 3 points, α = 1/2)",
    source="Figures 4 and 22 to 25",
)
def original_unharmed(m: Measurements) -> Judgement:
    gap = _injected(m, "original") - _injected(m, "original", fraction=0.0)
    return gap.named("original part − original only").between(-0.03, 0.03)


@study.claim("C8g", "the trend is there for the small student too (m = 9)", source="Figure 22: a weak trend")
def injected_small(m: Measurements) -> Judgement:
    gap = _injected(m, "original", width=9) - _injected(m, "injected", width=9)
    return gap.named("original − injected part, m = 9").above(0)


@study.claim(
    "C8h",
    "early gradients of a ResNet's filters agree: every pair of chunk means has cos ≥ 0.3 in every stage",
    source="Table 7",
)
def gradients_agree(m: Measurements) -> Judgement:
    return m.every("smallest_chunk_cosine", arm="resnet", labels="true").at_least(0.3)


@study.claim(
    "C8i",
    "the filters of its last stage turn more in the first seventh of training than in the rest",
    source="Figures 20 and 21",
)
def filters_turn_early(m: Measurements) -> Judgement:
    where = {"arm": "resnet", "labels": "true", "stage": 4}
    return (m.final("early_turn", **where) - m.final("late_turn", **where)).named("early − late turn").above(0)


def _first_minimum(m: Measurements, labelled_by: str) -> Values:
    """The width at the first local minimum of each seed's test loss; a curve without one has no value."""

    def width(curve: pl.DataFrame) -> float:
        found = first_local_minimum(curve["width"].to_list(), curve["value"].to_list()).size
        return float("nan") if found is None else float(found)  # type: ignore[call-overload]

    rows = m.rows("test_loss", arm="double-descent", labelled_by=labelled_by)
    return m.per_seed(rows, width, f"first minimum, {labelled_by}", by="width")


@study.claim(
    "C8j",
    "students of FC(9) on Gaussian inputs have their first minimum of test loss within a factor 2 of the images' own",
    source="Figure 26 (a, b)",
)
def same_minimum(m: Measurements) -> Judgement:
    return (_first_minimum(m, "FC(9)") / _first_minimum(m, "images")).named("width ratio").between(0.5, 2)


@study.claim("C8k", "a larger teacher moves the minimum to no smaller width", source="Figure 26 (b, c)")
def larger_teacher(m: Measurements) -> Judgement:
    return (_first_minimum(m, "FC(50)") - _first_minimum(m, "FC(9)")).named("width, FC(50) − FC(9)").at_least(0)


@study.claim("C8l", "and so does a still larger one (FC(500) against FC(50))", source="Figure 26 (c, d)")
def largest_teacher(m: Measurements) -> Judgement:
    return (_first_minimum(m, "FC(500)") - _first_minimum(m, "FC(50)")).named("width, FC(500) − FC(50)").at_least(0)


@study.claim(
    "N7",
    "with shuffled labels early ResNet gradients agree less than with the true ones (last stage)",
    source="control",
)
def shuffled_gradients(m: Measurements) -> Judgement:
    true, shuffled = (
        m.final("smallest_chunk_cosine", arm="resnet", labels=labels, stage=4) for labels in ("true", "shuffled")
    )
    return (true - shuffled).named("smallest cosine, true − shuffled").above(0)
