"""The claims on the sweeps over frequency and noise (C3g; C7, Figures 2 to 5), with a control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from assay.lab import Judgement, Measurements, Values, combine, farthest_from

from .arms import Params, part

Curve = np.ndarray[Any, Any]


@part.claim("C3g", "after the sweep's steps rare coefficients scale like ε/ε_max, within a factor 2", source="Stage 3")
def scale_with_frequency(m: Measurements[Params]) -> Judgement:
    nsr = m.params.noise[len(m.params.noise) // 2]
    ratios = [m.final("energy_ratio", arm="alignment", epsilon=e, nsr=nsr) * (1 / e) for e in m.params.rare]
    logs = [ratio.map(lambda value: float(np.log2(value))) for ratio in ratios]
    return combine(farthest_from(0), logs, "log2 of (rare/frequent)/ε, worst ε").between(-1, 1)


# Neurons that align with rare features (Figures 2 and 3)


@part.claim("C7a", "more neurons align with rare features as ε rises, at every noise level", source="Figure 2")
def counts_rise(m: Measurements[Params]) -> Judgement:
    return combine(min, _trained(m, "aligned", _rank), "rank correlation, worst NSR").at_least(0.9)


@part.claim("C7b", "at the largest ε more than three times as many neurons align as at the smallest", source="Figure 2")
def counts_triple(m: Measurements[Params]) -> Judgement:
    beyond = _trained(m, "aligned", lambda curve: float(curve[-1] - 3 * curve[0]))
    return combine(min, beyond, "aligned neurons, largest ε − 3 × smallest ε, worst NSR").above(0)


@part.claim("C7c", "the largest alignment rises with ε, at every noise level", source="Figure 3")
def best_rises(m: Measurements[Params]) -> Judgement:
    return combine(min, _trained(m, "best", _rank), "rank correlation, worst NSR").at_least(0.9)


@part.claim("C7d", "the largest alignment rises by at least 0.3 over the range of ε", source="Figure 3")
def best_rises_much(m: Measurements[Params]) -> Judgement:
    return combine(min, _trained(m, "best", _rise), "rise of max |cos|, worst NSR").at_least(0.3)


# What the representation is good for (Figures 4 and 5)


@part.claim(
    "C7e", "positive test pairs are more similar as ε rises (features of the test equally frequent)", source="Figure 4"
)
def cosine_rises(m: Measurements[Params]) -> Judgement:
    ranks = _tested(m, "pair_cosine", _rank, m.params.noise_of_figure_4)
    return combine(min, ranks, "rank correlation, worst NSR").at_least(0.9)


@part.claim("C7f", "the cosine of positive test pairs rises by at least 0.03 over the range of ε", source="Figure 4")
def cosine_rises_much(m: Measurements[Params]) -> Judgement:
    rises = _tested(m, "pair_cosine", _rise, m.params.noise_of_figure_4)
    return combine(min, rises, "rise of cosine, worst NSR").at_least(0.03)


@part.claim("C7g", "positive test pairs are less similar the more noise there is", source="Figure 4")
def cosine_falls_with_noise(m: Measurements[Params]) -> Judgement:
    means = _tested(m, "pair_cosine", lambda curve: float(curve.mean()), m.params.noise_of_figure_4)
    falls = [less - more for less, more in pairwise(means)]
    return combine(min, falls, "smallest fall of mean cosine between noise levels").above(0)


@part.claim("C7h", "the error of a linear head falls as ε rises", source="Figure 5")
def error_falls(m: Measurements[Params]) -> Judgement:
    ranks = _tested(m, "regression_error", _rank, m.params.noise_of_figure_5)
    return combine(max, ranks, "rank correlation, worst NSR").at_most(-0.9)


@part.claim("C7i", "the error of a linear head falls to half or less over the range of ε", source="Figure 5")
def error_halves(m: Measurements[Params]) -> Judgement:
    ratios = _tested(m, "regression_error", lambda curve: float(curve[-1] / curve[0]), m.params.noise_of_figure_5)
    return combine(max, ratios, "error at largest ε/smallest ε, worst NSR").at_most(0.5)


@part.claim(
    "N7",
    "on test data as imbalanced as training the error of a linear head falls by less over ε than on balanced data",
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


def _rank(curve: Curve) -> float:
    """Spearman's correlation with ε; a constant curve has none and counts as 0."""
    return float(stats.spearmanr(np.arange(len(curve)), curve).statistic) if np.ptp(curve) > 0 else 0.0


def _rise(curve: Curve) -> float:
    return float(curve[-1] - curve[0])
