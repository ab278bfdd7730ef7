"""Claims about a ResNet's filters: early gradients agree, and the filters turn early."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part


@part.claim(
    "C8h",
    "Early gradients of a ResNet's filters on two image classes agree: chunk means have pairwise cos of at least 0.3 "
    "in every stage.",
    source="Table 7",
)
def gradients_agree(m: Measurements[Params]) -> Judgement:
    return m.every("smallest_chunk_cosine", arm="resnet", labels="true").at_least(0.3)


@part.claim(
    "C8i",
    "On two image classes the filters of a ResNet's last stage turn more in the first seventh of training than later.",
    source="Figures 20 and 21",
)
def filters_turn_early(m: Measurements[Params]) -> Judgement:
    where = {"arm": "resnet", "labels": "true", "stage": 4}
    return (m.final("early_turn", **where) - m.final("late_turn", **where)).named("early − late turn").above(0)


@part.claim(
    "N7",
    "With shuffled labels of two image classes, a ResNet's early last-stage gradients agree less than with true ones.",
    source="control",
)
def shuffled_gradients(m: Measurements[Params]) -> Judgement:
    true, shuffled = (
        m.final("smallest_chunk_cosine", arm="resnet", labels=labels, stage=4) for labels in ("true", "shuffled")
    )
    return (true - shuffled).named("smallest cosine, true − shuffled").above(0)
