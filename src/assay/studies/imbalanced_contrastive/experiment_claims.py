"""The claims on the source's experiments: synthetic sweeps (C7, Figures 2 to 6), long-tailed images (C8, Table 2)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from assay.lab import Judgement, Measurements, Values, combine

from .study import study

BALANCED = "balanced"


def _over_epsilon(
    m: Measurements, metric: str, arm: str, nsr: float, number: Callable[[np.ndarray], float], **where: Any
) -> Values:
    """A number of each seed's curve of the metric over ε."""
    rows = m.rows(metric, arm=arm, nsr=nsr, **where)
    return m.per_seed(rows, lambda part: number(part["value"].to_numpy()), metric, by="epsilon")


def _over_noise(
    m: Measurements, metric: str, arm: str, noise: tuple[float, ...], number: Callable[[np.ndarray], float],
    worst: Callable[[list[float]], float], what: str, **where: Any,
) -> Values:  # fmt: skip
    """A number of each seed's curve over ε, the worst over the noise levels."""
    return combine(worst, [_over_epsilon(m, metric, arm, nsr, number, **where) for nsr in noise], what)


def _rank(values: np.ndarray) -> float:
    """Spearman's correlation with ε; a constant curve has none and counts as 0."""
    return float(stats.spearmanr(np.arange(len(values)), values).statistic) if np.ptp(values) > 0 else 0.0


@study.claim("C7a", "more neurons align with rare features as ε rises, at every noise level", source="Figure 2")
def counts_rise(m: Measurements) -> Judgement:
    return _over_noise(m, "aligned", "alignment", m.params.noise, _rank, min, "rank correlation, worst NSR").at_least(
        0.9
    )


@study.claim(
    "C7b", "at the largest ε more than three times as many neurons align as at the smallest", source="Figure 2"
)
def counts_triple(m: Measurements) -> Judgement:
    what = "aligned neurons, largest ε − 3 × smallest ε, worst NSR"
    number = lambda v: float(v[-1] - 3 * v[0])  # noqa: E731
    return _over_noise(m, "aligned", "alignment", m.params.noise, number, min, what).above(0)


@study.claim("C7c", "the largest alignment rises with ε, at every noise level", source="Figure 3")
def best_rises(m: Measurements) -> Judgement:
    return _over_noise(m, "best", "alignment", m.params.noise, _rank, min, "rank correlation, worst NSR").at_least(0.9)


@study.claim("C7d", "the largest alignment rises by at least 0.3 over the range of ε", source="Figure 3")
def best_rises_much(m: Measurements) -> Judgement:
    number = lambda v: float(v[-1] - v[0])  # noqa: E731
    return _over_noise(m, "best", "alignment", m.params.noise, number, min, "rise of max |cos|, worst NSR").at_least(
        0.3
    )


def _higher(m: Measurements) -> tuple[float, ...]:
    return tuple(m.params.noise_high[-3:])


def _lower(m: Measurements) -> tuple[float, ...]:
    return tuple(m.params.noise_high[:3])


@study.claim(
    "C7e", "positive test pairs are more similar as ε rises (features of the test equally frequent)", source="Figure 4"
)
def cosine_rises(m: Measurements) -> Judgement:
    values = _over_noise(
        m, "pair_cosine", "representation", _higher(m), _rank, min, "rank correlation, worst NSR", test=BALANCED
    )
    return values.at_least(0.9)


@study.claim("C7f", "the cosine of positive test pairs rises by at least 0.03 over the range of ε", source="Figure 4")
def cosine_rises_much(m: Measurements) -> Judgement:
    number = lambda v: float(v[-1] - v[0])  # noqa: E731
    values = _over_noise(
        m, "pair_cosine", "representation", _higher(m), number, min, "rise of cosine, worst NSR", test=BALANCED
    )
    return values.at_least(0.03)


@study.claim("C7g", "positive test pairs are less similar the more noise there is", source="Figure 4")
def cosine_falls_with_noise(m: Measurements) -> Judgement:
    means = [
        _over_epsilon(m, "pair_cosine", "representation", nsr, lambda v: float(v.mean()), test=BALANCED)
        for nsr in _higher(m)
    ]
    falls = [less - more for less, more in pairwise(means)]
    return combine(min, falls, "smallest fall of mean cosine between noise levels").above(0)


@study.claim("C7h", "the error of a linear head falls as ε rises", source="Figure 5")
def error_falls(m: Measurements) -> Judgement:
    values = _over_noise(
        m, "regression_error", "representation", _lower(m), _rank, max, "rank correlation, worst NSR", test=BALANCED
    )
    return values.at_most(-0.9)


@study.claim("C7i", "the error of a linear head falls to half or less over the range of ε", source="Figure 5")
def error_halves(m: Measurements) -> Judgement:
    number = lambda v: float(v[-1] / v[0])  # noqa: E731
    values = _over_noise(
        m, "regression_error", "representation", _lower(m), number, max, "error at largest ε/smallest ε, worst NSR",
        test=BALANCED,
    )  # fmt: skip
    return values.at_most(0.5)


@study.claim("C7j", "after training some neurons are lucky", source="Figure 6 (lists 7 of 24)", paper=7)
def some_lucky(m: Measurements) -> Judgement:
    return m.final("lucky", arm="dynamics", attention="softmax").named("lucky neurons").at_least(1)


@study.claim("C7k", "after training some neurons are mixed", source="Figure 6 (lists 4 of 24)", paper=4)
def some_mixed(m: Measurements) -> Judgement:
    return m.final("mixed", arm="dynamics", attention="softmax").named("mixed neurons").at_least(1)


@study.claim(
    "C7l", "frequent features have more lucky neurons each than rare ones", source="Figure 6: all lucky are frequent"
)
def lucky_are_frequent(m: Measurements) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    return (
        (m.final("lucky_per_frequent", **where) - m.final("lucky_per_rare", **where))
        .named("lucky per frequent − per rare feature")
        .above(0)
    )


@study.claim("C7m", "the median neuron is mostly features (random level: d/d₁)", source="Figure 6")
def mostly_features(m: Measurements) -> Judgement:
    return m.final("median_feature_share", arm="dynamics", attention="softmax").named("share of features").at_least(0.5)


# Long-tailed images


def _images(m: Measurements, metric: str, pruning: str, imbalance: float) -> Values:
    return m.final(metric, arm="images", pruning=pruning, imbalance=imbalance)


def _gain(m: Measurements, imbalance: float, pruning: str = "logit-masked", metric: str = "accuracy") -> Values:
    return _images(m, metric, pruning, imbalance) - _images(m, metric, "none", imbalance)


@study.claim(
    "C8a",
    "pruning raises probe accuracy at the largest imbalance",
    source="Table 2 (+7.1 points at ρ = 100)",
    paper=0.0707,
)
def accuracy_gain(m: Measurements) -> Judgement:
    return _gain(m, m.params.image_ratios[-1]).named("accuracy, pruned − plain").above(0)


@study.claim(
    "C8b",
    "pruning lowers the gap between head and tail classes at the largest imbalance",
    source="Table 2 (5.69 to 5.62 points)",
    paper=-0.0007,
)
def gap_falls(m: Measurements) -> Judgement:
    return _gain(m, m.params.image_ratios[-1], metric="gap").named("Δ₂₀, pruned − plain").below(0)


@study.claim(
    "C8c",
    "the gain in accuracy grows with the imbalance",
    source="Table 2 and its discussion",
    printed="improvements become more substantial as ρ increases; the table's gains on CIFAR-10 are 5.7, 8.0 and 7.1 "
    "points at ρ = 10, 50 and 100",
    when={"two imbalance ratios or more": lambda p: len(p.image_ratios) > 1},
)
def gain_grows(m: Measurements) -> Judgement:
    ratios = m.params.image_ratios
    return (_gain(m, ratios[-1]) - _gain(m, ratios[0])).named(f"gain at ρ = {ratios[-1]:g} − at {ratios[0]:g}").above(0)


@study.claim(
    "C8d",
    "the predecessor's self-competitor raises probe accuracy at the largest imbalance",
    source="Extension: the method that the source follows",
)
def self_competitor_gain(m: Measurements) -> Judgement:
    return _gain(m, m.params.image_ratios[-1], "self-competitor").named("accuracy, self-competitor − plain").above(0)


@study.claim(
    "N6",
    "pretraining helps at all: the probe is better than on the untrained encoder",
    source="control of the image pipeline",
)
def pretraining_helps(m: Measurements) -> Judgement:
    rho = m.params.image_ratios[0]
    return (
        (_images(m, "accuracy", "none", rho) - _images(m, "untrained_accuracy", "none", rho))
        .named("accuracy, pretrained − untrained")
        .above(0)
    )


@study.claim(
    "N7",
    "on test data as imbalanced as training the error of a linear head falls by less over ε than on balanced data",
    source="control: the trend of Figure 5 is about balanced tests",
)
def imbalanced_test(m: Measurements) -> Judgement:
    apart = []
    for nsr in _lower(m):
        balanced, imbalanced = (
            _over_epsilon(m, "regression_error", "representation", nsr, lambda v: float(v[0] - v[-1]), test=test)
            for test in (BALANCED, "as in training")
        )
        apart.append(balanced - imbalanced)
    return combine(min, apart, "fall of error on balanced − on imbalanced tests, worst NSR").above(0)
