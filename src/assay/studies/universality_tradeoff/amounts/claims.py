"""Claims about how much of which data an encoder is pretrained on, and what that does to the trade-off (C6)."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean
from typing import Any

from assay.lab import Judgement, Measurements, Values, combine, pick

from ..images.claims import SET, THREE_SETS, accuracy, few, many
from .arms import FEW_CLASSES, MANY_CLASSES, Params, part

FIFTH, TENTH = 0.2, 0.1  # shares of the target's images


def by_mixture(m: Measurements[Params], share: float = 1.0, labels: int | None = None) -> list[Values]:
    """Accuracy on the target along growing mixtures, with a share of the target's images."""
    where: dict[str, Any] = {"arm": "images"} if share == 1 else {"arm": "scarce", "share": share}
    return [accuracy(m, name, few(m) if labels is None else labels, **where) for name in m.params.mixtures()]


def lost(m: Measurements[Params], share: float = 1.0, labels: int | None = None) -> Values:
    """What the target loses from pretraining on all sets instead of its own."""
    own, *_, union = by_mixture(m, share, labels)
    return own - union


def u_shape(m: Measurements[Params], share: float) -> tuple[Values, Values]:
    """How far the accuracy on mixtures between the first and the last lies below that on each of these two."""
    own, *between, union = by_mixture(m, share)
    middle = combine(fmean, between, "mixtures between")
    return (own - middle).named("own set − mixtures between"), (union - middle).named("all sets − mixtures between")


@part.claim(
    "C6p",
    "Where the target's unlabelled images are scarce (a tenth), it loses less by pretraining on all image sets than "
    "with all of its images.",
    source="Figure F.6: with 20 % of CINIC-10 the curve is U-shaped, as other sets supply what is missing; fewest "
    "labels",
)
def scarce_loses_less(m: Measurements[Params]) -> Judgement:
    return (lost(m) - lost(m, TENTH)).named("drop, all − a tenth of the target's images").above(0)


@part.claim(
    "C6r",
    "Where a fifth of the target's unlabelled images is left, its accuracy over growing mixtures is U-shaped: on those "
    "between, it is lower on average than on its own set alone and than on all sets.",
    source="Figure F.6 with 20 % of CINIC-10: other sets take room first and supply what is missing then; the end that "
    "lies less above the mixtures between; fewest labels; " + SET,
    when=THREE_SETS,
)
def curve_is_a_u(m: Measurements[Params]) -> Judgement:
    return pick(min, u_shape(m, FIFTH)).above(0)


@part.claim(
    "C6s",
    "With all of the target's unlabelled images its accuracy falls with every image set that is added to the "
    "pretraining, at the fewest labels.",
    source="Figure F.6 with all of CINIC-10: a monotone fall; the step with the smallest mean fall; " + SET,
)
def falls_with_every_set(m: Measurements[Params]) -> Judgement:
    falls = [before - after for before, after in pairwise(by_mixture(m))]
    return pick(min, falls).named("accuracy, before − after a set is added, smallest step").above(0)


@part.claim(
    "C6t",
    "Where a related set takes the place of the target's own images in the pretraining, the target still loses "
    "accuracy by all other image sets, at the fewest labels.",
    source="Figure F.7 and Figure 7.3 differ in this: CIFAR-10's own images and CINIC-10 give the same picture; here "
    "the target's images slanted, smaller, blurred and of lower contrast; " + SET,
)
def related_falls(m: Measurements[Params]) -> Judgement:
    own, *_, union = related_accuracies(m)
    return (own - union).named("related set alone − with all other sets").above(0)


def related_accuracies(m: Measurements[Params], labels: int | None = None) -> list[Values]:
    """Accuracy on the target along growing mixtures whose first set is a related one."""
    return [accuracy(m, name, few(m) if labels is None else labels, arm="related") for name in m.params.mixtures()]


@part.claim(
    "C6u",
    "An encoder pretrained on a tenth of all image sets' images is less accurate on the target than one pretrained on "
    "all of them, at the fewest labels.",
    source="Table F.2: 30.06 against 58.78 % on Bird with 500 labels; " + SET,
)
def tenth_is_too_little(m: Measurements[Params]) -> Judgement:
    return tenth_gap(m, few(m)).above(0)


@part.claim(
    "C6v",
    "With the most labels an encoder pretrained on a tenth of all image sets' images is still less accurate on the "
    "target than one pretrained on all of them.",
    source="Table F.2: 48.50 against 85.93 % on Bird with 8,000 labels: labels do not make up for it; " + SET,
)
def tenth_stays_behind(m: Measurements[Params]) -> Judgement:
    return tenth_gap(m, many(m)).above(0)


def tenth_gap(m: Measurements[Params], labels: int) -> Values:
    """Between all images of all sets and a tenth of them."""
    last = m.params.mixtures()[-1]
    gap = accuracy(m, last, labels) - accuracy(m, last, labels, arm="tenth")
    return gap.named(f"accuracy, {labels} labels, all − a tenth of the images")


@part.claim(
    "C6q",
    "At the same number of other images the target loses more where these come from ten classes than from one (fewest "
    "labels).",
    source="Figure F.5: 200,000 images of ImageNet32 from 50 to 1,000 classes; here a tenth of the last image set",
)
def more_classes_cost_more(m: Measurements[Params]) -> Judgement:
    one, ten = (
        m.final("accuracy", arm="classes", classes=k, task=m.params.image_sources[0], labels=few(m))
        for k in (FEW_CLASSES, MANY_CLASSES)
    )
    return (one - ten).named("accuracy, one class − ten classes").above(0)
