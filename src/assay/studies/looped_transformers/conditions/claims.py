"""The claims on condition numbers: their means, the source's printed ones, and their limit (C5)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from assay.lab import Judgement, Measurements, combine

from .arms import Params, part
from .theory import trial_means


def _source_dimension(params: Params) -> bool:
    return params.dim == 4


def _source_trials(params: Params) -> bool:
    return params.trials == 10


@part.claims_over(
    {
        "C5a": {"n": 16, "mean": 4.86},
        "C5b": {"n": 32, "mean": 2.82},
        "C5c": {"n": 64, "mean": 2.03},
        "C5d": {"n": 128, "mean": 1.64},
    },
    statement="the mean condition number at n = {n} is {mean} (reference value), within 5 %",
    source="Section 8.6; the reference is 20,000 draws, the source averages 10",
    when={"d = 4": _source_dimension},
)
def mean_condition(m: Measurements[Params], *, n: int, mean: float) -> Judgement:
    values = m.final("mean_condition", arm="condition-numbers", examples=n)
    return values.named(f"mean κ at n = {n}").between(0.95 * mean, 1.05 * mean)


@part.claim("C5e", "more examples mean a smaller condition number, at every n", source="Section 8.6")
def falling_condition(m: Measurements[Params]) -> Judgement:
    means = [m.final("mean_condition", arm="condition-numbers", examples=n) for n in m.params.examples]
    falls = [a - b for a, b in itertools.pairwise(means)]
    return combine(min, falls, "smallest fall of mean κ").above(0)


@part.claims_over(
    {
        "C5f": {"n": 16, "paper": 4.57},
        "C5g": {"n": 32, "paper": 3.13},
        "C5h": {"n": 64, "paper": 2.07},
        "C5i": {"n": 128, "paper": 1.62},
    },
    statement="the printed κ at n = {n} lies within the 5–95 % band of a mean over 10 trials",
    source="Figure 8.1",
    when={"d = 4": _source_dimension, "means over 10 trials": _source_trials},
)
def printed_condition(m: Measurements[Params], *, n: int) -> Judgement:
    printed = m.paper_value(examples=n, metric="condition")

    def below(conditions: np.ndarray[Any, Any]) -> float:
        return float((trial_means(conditions[None], m.params.trials) < printed).mean())

    what = f"share of 10-trial means below {printed:g}"
    shares = m.array_per_seed("conditions", below, what, arm="condition-numbers", examples=n)
    return shares.between(0.05, 0.95)


@part.claim(
    "C5j",
    "with 8 examples per dimension the mean condition number stays below its limit at every dimension",
    source="Theorem 8.1, informal: n = O(d) gives a constant κ; the limit is ((1 + √(d/n))/(1 − √(d/n)))²",
)
def constant_condition(m: Measurements[Params]) -> Judgement:
    shares = [
        m.final("mean_condition", arm="dimensions", width=d) / m.final("edge", arm="dimensions", width=d)
        for d in m.params.dims
    ]
    return combine(max, shares, "largest mean κ/limit").below(1)
