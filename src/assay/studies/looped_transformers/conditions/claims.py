"""The claims on condition numbers: their means, the source's printed ones, and their limit (C5)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from assay.lab import Judgement, Measurements, Values, combine

from .arms import Params, part
from .theory import trial_means


def _at(n: int) -> dict[str, Callable[[Params], bool]]:
    return {f"n = {n} and d = 4": lambda params: params.dim == 4 and n in params.examples}


def _source_trials(params: Params) -> bool:
    return params.trials == 10


TEN = {"means over 10 trials": _source_trials}


@part.claims_over(
    {
        "C5a": {"n": 16, "mean": 4.817, "paper": 4.57, "when": _at(16)},
        "C5b": {"n": 32, "mean": 2.821, "paper": 3.13, "when": _at(32)},
        "C5c": {"n": 64, "mean": 2.033, "paper": 2.07, "when": _at(64)},
        "C5d": {"n": 128, "mean": 1.637, "paper": 1.62, "when": _at(128)},
    },
    statement="The mean condition number κ of Gaussian prompts with {n} examples in 4 dimensions is {mean}, within "
    "5 %.",
    source="Section 8.6, which prints {paper}, a mean over 10 trials; ours is the exact mean, by quadrature over the "
    "density of the eigenvalues",
)
def mean_condition(m: Measurements[Params], *, n: int, mean: float) -> Judgement:
    values = m.final("mean_condition", arm="condition-numbers", examples=n).named(f"mean κ at n = {n}")
    because = "5 %; the source's own means, over 10 trials, scatter by 4 to 14 %"
    return values.equals(mean, within=0.05 * mean, because=because)


@part.claim(
    "C5e",
    "Gaussian prompts with more examples have a smaller mean condition number κ, at every number of examples tried.",
    source="Section 8.6",
)
def falling_condition(m: Measurements[Params]) -> Judgement:
    means = [m.final("mean_condition", arm="condition-numbers", examples=n) for n in sorted(set(m.params.examples))]
    falls = [a - b for a, b in itertools.pairwise(means)]
    return combine(min, falls, "smallest fall of mean κ").above(0)


@part.claims_over(
    {
        "C5f": {"n": 16, "printed": 4.57, "when": _at(16) | TEN},
        "C5g": {"n": 32, "printed": 3.13, "when": _at(32) | TEN},
        "C5h": {"n": 64, "printed": 2.07, "when": _at(64) | TEN},
        "C5i": {"n": 128, "printed": 1.62, "when": _at(128) | TEN},
    },
    statement="The condition number {printed} that the source prints for {n} examples in 4 dimensions lies in the "
    "5–95 % band of means over 10 Gaussian prompts.",
    source="Figure 8.1",
)
def printed_condition(m: Measurements[Params], *, n: int, printed: float) -> Judgement:
    trials = m.params.trials

    def below(conditions: np.ndarray[Any, Any]) -> float:
        return float((trial_means(conditions[None], trials) < printed).mean())

    what = f"share of {trials}-trial means below {printed:g}"
    shares = m.array_per_seed("conditions", below, what, arm="condition-numbers", examples=n)
    groups = dict.fromkeys(shares.by_seed, m.params.draws // trials)
    return Values.measured(shares.by_seed, what, groups).between(0.05, 0.95)


@part.claim(
    "C5j",
    "With a fixed number of Gaussian examples per dimension the mean condition number κ stays below "
    "((1 + √(d/n))/(1 − √(d/n)))² in every dimension tried.",
    source="Theorem 8.1, informal: n = O(d) gives a constant κ; the limit is Marchenko and Pastur's",
    headline=True,
)
def constant_condition(m: Measurements[Params]) -> Judgement:
    shares = [
        m.final("mean_condition", arm="dimensions", width=d) / m.final("edge", arm="dimensions", width=d)
        for d in m.params.dims
    ]
    return combine(max, shares, "largest mean κ/limit").below(1)
