"""Claims about mixtures of image sets: the trade-off (C6), similarity (C7), the contrastive update (C8)."""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from functools import partial
from statistics import fmean
from typing import Any

from assay.lab import Judgement, Measurements, Values, combine
from assay.probes import linear_cka
from assay.probes.cka import UndefinedCka

from .arms import PIXELS, UNTRAINED, Params, part

SET = "small encoders of the run's image sets; linear heads with the penalty chosen on their own labels"
THREE_SETS: dict[str, Any] = {"at least three image sets": lambda p: len(p.image_sources) >= 3}


def accuracy(
    m: Measurements[Params], encoder: str, labels: int, *, arm: str = "images", metric: str = "accuracy", **more: Any
) -> Values:
    """On the target's test images."""
    return m.final(metric, arm=arm, encoder=encoder, task=m.params.image_sources[0], labels=labels, **more)


def drop(m: Measurements[Params], labels: int, arm: str = "images") -> Values:
    """What the target loses from pretraining on all sets instead of its own."""
    first, last = m.params.mixtures()[0], m.params.mixtures()[-1]
    return accuracy(m, first, labels, arm=arm) - accuracy(m, last, labels, arm=arm)


def average(m: Measurements[Params], encoder: str, labels: int) -> Values:
    """Over all tasks, each with the same number of classes."""
    tasks = [m.final("accuracy", arm="images", encoder=encoder, task=t, labels=labels) for t in m.params.image_sources]
    return combine(fmean, tasks, "average accuracy")


def cka(m: Measurements[Params], first: dict[str, Any], second: dict[str, Any], what: str) -> Values:
    """Unbiased linear CKA of two encoders' features of the target's test images, seed by seed; NaN where an encoder
    diverged, or collapsed so that it is 0/0."""
    finite = [m.array_per_seed("features", lambda _: 1.0, what, **where) for where in (first, second)]
    pairs = zip(*(m.array("features", **where) for where in (first, second)), strict=True)
    found = {}
    for (seed, known), (one, other) in zip(sorted((finite[0] * finite[1]).by_seed.items()), pairs, strict=True):
        found[seed] = math.nan
        if math.isfinite(known):
            with suppress(UndefinedCka):
                found[seed] = linear_cka(one, other, unbiased=True)
    return Values(found, what)


def directions(m: Measurements[Params], encoder: str) -> Values:
    """How many directions the features of the target's test images use: the participation ratio (Σλ)²/Σλ² of their
    covariance's eigenvalues λ, as many where all are equal."""
    return m.array_per_seed("features", participation, "directions", arm="images", encoder=encoder)


def participation(features: Any) -> float:
    """(Σλ)²/Σλ² for features (n, dim), without their mean; NaN where they do not vary, or are not finite."""
    centred = features - features.mean(0)
    covariance = centred.T @ centred
    size = float((covariance**2).sum())
    return float(covariance.trace()) ** 2 / size if size > 0 else math.nan


def few(m: Measurements[Params]) -> int:
    return m.params.image_labels[0]


def many(m: Measurements[Params]) -> int:
    return m.params.image_labels[-1]


@part.claim(
    "C6l",
    "With the fewest labels a linear head on the target is less accurate on an encoder of all image sets than on one "
    "of the target's own.",
    source="Figure 7.3; " + SET,
    headline=True,
)
def target_falls(m: Measurements[Params]) -> Judgement:
    return drop(m, few(m)).named(f"{m.params.image_sources[0]}, {few(m)} labels: own − all sets").above(0)


@part.claim(
    "C6m",
    "With the fewest labels the average accuracy of linear heads over the tasks of all image sets is higher on an "
    "encoder of all sets than on one of the target's set alone.",
    source="Figure 7.3; " + SET,
    headline=True,
)
def average_rises(m: Measurements[Params]) -> Judgement:
    first, last = m.params.mixtures()[0], m.params.mixtures()[-1]
    gain = average(m, last, few(m)) - average(m, first, few(m))
    return gain.named("average accuracy, all sets − target's own").above(0)


@part.claim(
    "C6n",
    "What the target loses in accuracy by pretraining on all image sets is more with the fewest labels than with the "
    "most, on average over seeds.",
    source="Figures F.9 to F.13; the trade-off shrinks on images, and vanishes in the linear model only; " + SET,
)
def shrinks(m: Measurements[Params]) -> Judgement:
    gap = drop(m, few(m)) - drop(m, many(m))
    return gap.named(f"drop at {few(m)} − at {many(m)} labels").above(0)


@part.claim(
    "X5a",
    "With the most labels a linear head on the target is still less accurate on an encoder of all image sets than on "
    "one of the target's own.",
    source="beyond the source's linear model, where the loss vanishes with many labels; " + SET,
)
def remains(m: Measurements[Params]) -> Judgement:
    return drop(m, many(m)).named(f"own − all sets, {many(m)} labels").above(0)


@part.claim(
    "C6o",
    "With the fewest labels a linear head on the target is less accurate on an encoder of all image sets than on one "
    "of the target's own, both trained with a slow copy and a queue (MoCo).",
    source="Figure 7.3 is MoCo v2; " + SET,
)
def moco_falls(m: Measurements[Params]) -> Judgement:
    return drop(m, few(m), "moco").named(f"MoCo, {few(m)} labels: own − all sets").above(0)


@part.claim(
    "N9",
    "Contrastive pretraining on the target's images helps: at the fewest labels its encoder beats the untrained one.",
    source="control of the pipeline",
)
def beats_untrained(m: Measurements[Params]) -> Judgement:
    gain = accuracy(m, m.params.mixtures()[0], few(m)) - accuracy(m, UNTRAINED, few(m))
    return gain.named(f"{few(m)} labels, pretrained − untrained").above(0)


@part.claim(
    "N10",
    "Pretraining on another image set alone is worse for the target than its own, at the fewest labels, whichever set.",
    source="control: image sets have features of their own",
)
def foreign_is_worse(m: Measurements[Params]) -> Judgement:
    others = [accuracy(m, name, few(m)) for name in m.params.image_sources[1:]]
    best = combine(max, others, "best other set")
    return (accuracy(m, m.params.mixtures()[0], few(m)) - best).named("own − best other set").above(0)


@part.claim(
    "X5b",
    "With the most labels a linear head on raw pixels is more accurate than one on the small encoder pretrained on the "
    "target's set.",
    source="what few outputs cost: raw pixels stand beside every result; " + SET,
)
def pixels_win(m: Measurements[Params]) -> Judgement:
    gap = accuracy(m, PIXELS, many(m)) - accuracy(m, m.params.mixtures()[0], many(m))
    return gap.named(f"{many(m)} labels, raw pixels − encoder").above(0)


@part.claim(
    "X5c",
    "On target images the features of the target's own encoder spread over more directions than those of the encoder "
    "of all image sets, by the participation ratio of their spectrum.",
    source="beyond the source: whether the own encoder lacks room, where it is the less accurate one; " + SET,
)
def own_uses_more_directions(m: Measurements[Params]) -> Judgement:
    first, last = m.params.mixtures()[0], m.params.mixtures()[-1]
    return (directions(m, first) - directions(m, last)).named("directions used, own − all sets").above(0)


@part.claim(
    "C7e",
    "As image sets are added, similarity on target images (CKA) and the distance between mixtures are negatively "
    "rank-correlated in every row of the map, other mixtures only.",
    source="Figure 7.5, right; the largest row, without the diagonal, of those with mixtures at several distances",
    when=THREE_SETS,
)
def rows_decrease(m: Measurements[Params]) -> Judgement:
    names = m.params.mixtures()
    rows = []
    for i, row in enumerate(names):
        away = [abs(i - j) for j in range(len(names)) if j != i]
        if len(set(away)) > 1:
            cells = [cka(m, _of(row), _of(column), f"{row}, {column}") for column in names if column != row]
            rows.append(combine(partial(_rank_correlation, away), cells, row))
    return combine(max, rows, "rank correlation of CKA and distance, largest row").below(0)


@part.claim(
    "C7f",
    "Encoders of single image sets are less alike on target images (CKA) than those of neighbouring mixtures.",
    source="Figure 7.5, left: similarities of single data sets are low; against the right map's neighbours",
)
def singles_differ(m: Measurements[Params]) -> Judgement:
    sources, names = m.params.image_sources, m.params.mixtures()
    alone = [cka(m, _of(a), _of(b), f"{a}, {b}") for i, a in enumerate(sources) for b in sources[i + 1 :]]
    near = [cka(m, _of(a), _of(b), f"{a}, {b}") for a, b in itertools.pairwise(names)]
    gap = combine(fmean, near, "neighbours") - combine(fmean, alone, "single sets")
    return gap.named("CKA, neighbouring mixtures − single sets").above(0)


@part.claim(
    "C7g",
    "Similarity (CKA) to an encoder without weight decay falls with every larger weight decay, on target images.",
    source="Figure F.4: fewer features are encoded; encoders of the target's set",
)
def decay_decreases(m: Measurements[Params]) -> Judgement:
    first, *others = ({"arm": "image-decay", "decay": d} for d in m.params.image_decays)
    row = [cka(m, first, other, f"decay {other['decay']}") for other in others]
    steps = [1 - row[0], *(a - b for a, b in itertools.pairwise(row))]
    return combine(min, steps, "smallest fall of CKA").above(0)


@part.claim(
    "C8e",
    "A contrastive update on target images raises a linear head's accuracy on the encoder of all image sets, at the "
    "fewest labels.",
    source="Table F.9; " + SET,
)
def update_gains(m: Measurements[Params]) -> Judgement:
    return gain(m, m.params.mixtures()[-1]).named("accuracy on all sets' encoder, after − before").above(0)


@part.claim(
    "C8f",
    "A contrastive update on target images gains more on the encoder of all image sets than on the target's own, at "
    "the fewest labels.",
    source="Table F.9: −0.03, 1.73, 3.88 and 6.79 points; " + SET,
)
def gain_grows(m: Measurements[Params]) -> Judgement:
    gap = gain(m, m.params.mixtures()[-1]) - gain(m, m.params.mixtures()[0])
    return gap.named("gain of the update, all sets − own").above(0)


@part.claim(
    "C8g",
    "After a contrastive update on target images the encoder of all image sets is still less accurate than the "
    "target's own was, at the fewest labels.",
    source="Tables F.10 and F.11: Bird 69.39 to 73.25, its own 81.42; for Vehicle the update suffices",
)
def still_below(m: Measurements[Params]) -> Judgement:
    own = accuracy(m, m.params.mixtures()[0], few(m))
    after = accuracy(m, m.params.mixtures()[-1], few(m), metric="updated_accuracy")
    return (own - after).named("own before − all sets after the update").above(0)


@part.claim(
    "C8p",
    "What a linear head gains from a contrastive update on target images grows with the number of image sets in the "
    "encoder's pretraining, by the least-squares slope at the fewest labels.",
    source="Table F.9: −0.03, 1.73, 3.88 and 6.79 points, a slope of 2.3 points a set; " + SET,
    when=THREE_SETS,
)
def gain_rises_with_sets(m: Measurements[Params]) -> Judgement:
    return gain_slope(m, few(m)).above(0)


@part.claim(
    "C8q",
    "What a linear head gains from a contrastive update on target images grows with the number of image sets in the "
    "encoder's pretraining, by the least-squares slope at the most labels.",
    source="Table F.9 is with all labels: −0.03, 1.73, 3.88 and 6.79 points, a slope of 2.3 points a set; " + SET,
    when=THREE_SETS,
)
def gain_rises_with_many_labels(m: Measurements[Params]) -> Judgement:
    return gain_slope(m, many(m)).above(0)


def gain_slope(m: Measurements[Params], labels: int) -> Values:
    """Of the update's gain, per image set that is added to the pretraining."""
    gains = [gain(m, encoder, labels) for encoder in m.params.mixtures()]
    return combine(_slope, gains, f"slope of the update's gain per image set, {labels} labels")


def _slope(values: list[float]) -> float:
    """Of the least-squares line through values at 1, 2, 3, …"""
    middle = (len(values) - 1) / 2
    away = [place - middle for place in range(len(values))]
    return sum(a * v for a, v in zip(away, values, strict=True)) / sum(a * a for a in away)


def gain(m: Measurements[Params], encoder: str, labels: int | None = None) -> Values:
    """Of the contrastive update."""
    count = few(m) if labels is None else labels
    return accuracy(m, encoder, count, metric="updated_accuracy") - accuracy(m, encoder, count)


def _of(encoder: str) -> dict[str, Any]:
    return {"arm": "images", "encoder": encoder}


def _rank_correlation(distances: list[int], values: list[float]) -> float:
    """Spearman's, of a row of the map with its distances from the diagonal; the diagonal itself, where CKA is 1 by
    definition, would give any row a negative one."""
    from scipy.stats import spearmanr

    return float(spearmanr(distances, values).statistic)
