"""The claims on step sizes: better rules (X8), the step as knowledge of the prompt (C4g), and controls."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from assay.lab import Judgement, Measurements, Values

from ..convergence.claims import FLOOR, kept, worst
from ..params import Loops
from .arms import part
from .theory import remaining_error


def _log_ratio(m: Measurements[Loops], ours: str, theirs: str) -> Values:
    error = m.final("parameter_error", arm="steps", rule=ours) / m.final("parameter_error", arm="steps", rule=theirs)
    return error.map(lambda ratio: float(np.log10(ratio))).named(f"log10 error, {ours} against {theirs}")


def _two_loops(params: Loops) -> bool:
    return params.compared_loops >= 2


@part.claim(
    "X8a",
    "With the best constant step, 2/(L + μ), the distance from θ* is smaller than with 1/L after the same number of "
    "loops.",
    source="Beyond the source: Definition 8.7 allows any steps",
)
def best_constant(m: Measurements[Loops]) -> Judgement:
    return _log_ratio(m, "2/(L+mu)", "1/L").below(0)


@part.claim(
    "X8b",
    "With Chebyshev steps, one per loop, the distance from θ* is smaller than with the best constant step after as "
    "many loops.",
    source="Beyond the source: Definition 8.7 allows any steps",
    when={"two loops or more": _two_loops},  # one Chebyshev step is the best constant step
)
def chebyshev(m: Measurements[Loops]) -> Judgement:
    return _log_ratio(m, "chebyshev", "2/(L+mu)").below(0)


@part.claim(
    "X8c",
    "Steps of 1/L, steps of 2/(L + μ) and Chebyshev steps each keep the distance from θ* within the classical bound of "
    "their rule after every number of loops tried, above rounding.",
    source="Classical rates of each rule",
)
def rules_keep_bounds(m: Measurements[Loops]) -> Judgement:
    labels = ["rule", "seed", "step"]
    rows = m.rows(["parameter_error", "bound"], arm="steps").pivot("metric", index=labels, values="value")
    rows = rows.filter(pl.col("step") >= 1)  # before the first loop error and bound are both 1
    rows = kept(rows, pl.col("parameter_error") > FLOOR**0.5, "parameter_error", "bound")
    return worst(rows, pl.col("parameter_error") / pl.col("bound"), "error/bound, T ≥ 1").at_most(1, tolerance=1e-6)


@part.claim(
    "X8d",
    "Steps of 1.9/L, nearly twice as long as the source allows, still converge: to within 1e-6 of θ* in 200 loops.",
    source="Lemma 8.23 asks for η ≤ 1/L; η < 2/L suffices",
)
def below_limit(m: Measurements[Loops]) -> Judgement:
    return m.final("parameter_error", arm="step-limit", rule="1.9/L").at_most(1e-6)


@part.claim(
    "N5",
    "Steps of 2.1/L diverge: after 200 loops the distance from θ* is larger than at the start.",
    source="Control: η ≥ 2/L; ‖θ*‖ = 1",
)
def above_limit(m: Measurements[Loops]) -> Judgement:
    error = m.final("parameter_error", arm="step-limit", rule="2.1/L").map(lambda value: float(np.log10(value)))
    return error.named("log10 of the parameter error after 200 loops").above(0)


@part.claim(
    "C4g",
    "One step fitted to typical Gaussian prompts diverges where the inputs are twice as large: the step is knowledge "
    "of the prompt.",
    source="Remark 8.8; after 50 loops",
    printed="the model has no prior knowledge of X",
    headline=True,
)
def step_is_knowledge(m: Measurements[Loops]) -> Judgement:
    error = m.final("parameter_error", arm="fixed-step", scale=2.0).map(np.log10)
    return error.named("log10 of the parameter error after 50 loops").above(0)


@part.claim(
    "N8",
    "One step fitted to typical Gaussian prompts converges on such prompts: to within 0.01 of θ* in 50 loops.",
    source="Control of C4g",
)
def expected_size(m: Measurements[Loops]) -> Judgement:
    return m.final("parameter_error", arm="fixed-step", scale=1.0).at_most(0.01)


@part.boundary(
    "N8",
    says="It does where Marchenko and Pastur's spectrum leaves less than 0.01 of the error after 50 loops.",
    arms=("fixed-step",),
    point={"scale": "1.0"},
)
def contracts_in_time(params: Loops) -> float:
    return math.log(0.01 / remaining_error(params.compared_examples, params.dim, 50))
