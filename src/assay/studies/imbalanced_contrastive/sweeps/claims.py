"""The claims on the sweeps over frequency and noise (C3g; C7, Figures 2 to 5), with controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from assay.lab import Judgement, Measurements, Values, combine, farthest, rise

from .arms import Params, part

Curve = np.ndarray[Any, Any]


@part.claim(
    "C3g",
    "After contrastive training of a fixed length the coefficients of rare features are ε times those of frequent "
    "ones, within a factor 2 at every frequency (ε) tried.",
    source="Stage 3: |α_ij| ∈ (ε_j/ε_max)[τ/Ξ₂, τ]; middle noise level",
)
def scale_with_frequency(m: Measurements[Params]) -> Judgement:
    nsr = m.params.noise[len(m.params.noise) // 2]
    ratios = [m.final("energy_ratio", arm="alignment", epsilon=e, nsr=nsr) * (1 / e) for e in m.params.rare]
    logs = [ratio.map(lambda value: float(np.log2(value))) for ratio in ratios]
    because = "a factor 2, under a third of the way, in logarithms, to the orders 1 and ε² at ε = 0.1"
    return farthest(0, logs, "log2 of (rare/frequent)/ε, worst ε").equals(0, within=1, because=because)


# Neurons that align with rare features (Figures 2 and 3)


@part.claim(
    "C7a",
    "The more frequent rare features are (ε), the more neurons align with them (|cos| ≥ 0.3), at every noise level.",
    source="Figure 2",
)
def counts_rise(m: Measurements[Params]) -> Judgement:
    return combine(min, _trained(m, "aligned", rise), "rank correlation, worst NSR").at_least(0.9)


@part.claim(
    "C7b",
    "Over three times as many neurons align with a rare feature at the largest frequency of the sweep (ε) as at the "
    "smallest.",
    source="Figure 2; largest and smallest ε",
    headline=True,
)
def counts_triple(m: Measurements[Params]) -> Judgement:
    beyond = _trained(m, "aligned", lambda curve: float(curve[-1] - 3 * curve[0]))
    return combine(min, beyond, "aligned neurons, largest ε − 3 × smallest ε, worst NSR").above(0)


@part.claim(
    "C7c",
    "The more frequent a rare feature is (ε), the better the neuron that is best aligned with it, at every noise "
    "level.",
    source="Figure 3",
)
def best_rises(m: Measurements[Params]) -> Judgement:
    return combine(min, _trained(m, "best", rise), "rank correlation, worst NSR").at_least(0.9)


@part.claim(
    "C7d",
    "From the smallest to the largest frequency (ε) the best alignment with a rare feature (|cos|) rises by at least "
    "0.3.",
    source="Figure 3",
)
def best_rises_much(m: Measurements[Params]) -> Judgement:
    return combine(min, _trained(m, "best", _rise), "rise of max |cos|, worst NSR").at_least(0.3)


@part.claim(
    "N8",
    "When rare features become more frequent (ε), the number of neurons aligned with the frequent ones does not rise.",
    source="control of Figure 2: neurons of frequent features (|cos| ≥ 0.3) at the largest ε against the smallest",
)
def frequent_gain_none(m: Measurements[Params]) -> Judgement:
    rises = _trained(m, "frequent_aligned", _rise)
    return combine(max, rises, "rise of neurons per frequent feature, worst NSR").at_most(0)


# What the representation is good for (Figures 4 and 5)


@part.claim(
    "C7e",
    "The more frequent rare features were in training (ε), the more similar are positive pairs of a test with all "
    "equally frequent.",
    source="Figure 4",
)
def cosine_rises(m: Measurements[Params]) -> Judgement:
    ranks = _tested(m, "pair_cosine", rise, m.params.noise_of_figure_4)
    return combine(min, ranks, "rank correlation, worst NSR").at_least(0.9)


@part.claim(
    "C7f",
    "From the smallest to the largest frequency (ε) in training, the cosine of balanced positive test pairs rises by "
    "0.03 or more.",
    source="Figure 4",
)
def cosine_rises_much(m: Measurements[Params]) -> Judgement:
    rises = _tested(m, "pair_cosine", _rise, m.params.noise_of_figure_4)
    return combine(min, rises, "rise of cosine, worst NSR").at_least(0.03)


@part.claim(
    "C7g",
    "The more noise there is (NSR), the less similar are positive test pairs to a trained encoder.",
    source="Figure 4; mean cosine over ε",
)
def cosine_falls_with_noise(m: Measurements[Params]) -> Judgement:
    means = _tested(m, "pair_cosine", lambda curve: float(curve.mean()), m.params.noise_of_figure_4)
    falls = [less - more for less, more in pairwise(means)]
    return combine(min, falls, "smallest fall of mean cosine between noise levels").above(0)


@part.claim(
    "C7h",
    "The more frequent rare features were in training (ε), the smaller is the test error of a linear head on balanced "
    "data.",
    source="Figure 5",
)
def error_falls(m: Measurements[Params]) -> Judgement:
    ranks = _tested(m, "regression_error", rise, m.params.noise_of_figure_5)
    return combine(max, ranks, "rank correlation, worst NSR").at_most(-0.9)


@part.claim(
    "C7i",
    "From the smallest to the largest frequency of rare features (ε) a linear head's error on balanced tests falls to "
    "half or less.",
    source="Figure 5",
)
def error_halves(m: Measurements[Params]) -> Judgement:
    ratios = _tested(m, "regression_error", lambda curve: float(curve[-1] / curve[0]), m.params.noise_of_figure_5)
    return combine(max, ratios, "error at largest ε/smallest ε, worst NSR").at_most(0.5)


@part.claim(
    "N7",
    "On test data as imbalanced as training, a linear head's error falls by less over the frequency (ε) than on "
    "balanced data.",
    source="control: the trend of Figure 5 is about balanced tests",
)
def imbalanced_test(m: Measurements[Params]) -> Judgement:
    balanced, imbalanced = (
        _tested(m, "regression_error", lambda curve: float(curve[0] - curve[-1]), m.params.noise_of_figure_5, test)
        for test in ("balanced", "as in training")
    )
    apart = [one - other for one, other in zip(balanced, imbalanced, strict=True)]
    return combine(min, apart, "fall of error on balanced − on imbalanced tests, worst NSR").above(0)


def _trained(m: Measurements[Params], metric: str, number: Callable[[Curve], float]) -> list[Values]:
    """A number of each seed's curve over ε, per noise level of Figures 2 and 3."""
    return [_over_epsilon(m, metric, number, arm="alignment", nsr=nsr) for nsr in m.params.noise]


def _tested(
    m: Measurements[Params],
    metric: str,
    number: Callable[[Curve], float],
    noise: Sequence[float],
    test: str = "balanced",
) -> list[Values]:
    """A number of each seed's curve over ε on test data, per noise level."""
    return [_over_epsilon(m, metric, number, arm="representation", nsr=nsr, test=test) for nsr in noise]


def _over_epsilon(m: Measurements[Params], metric: str, number: Callable[[Curve], float], **where: Any) -> Values:
    rows = m.rows(metric, **where)
    return m.per_seed(rows, lambda curve: number(curve["value"].to_numpy()), metric, by="epsilon")


def _rise(curve: Curve) -> float:
    return float(curve[-1] - curve[0])
