"""The claims on step sizes: better rules (C8), the step as knowledge of the prompt (C4g), and controls."""

from __future__ import annotations

import numpy as np
import polars as pl

from assay.lab import Judgement, Measurements, Values

from ..convergence.claims import FLOOR, kept, worst
from ..params import Loops
from .arms import part


def _log_ratio(m: Measurements[Loops], ours: str, theirs: str) -> Values:
    error = m.final("parameter_error", arm="steps", rule=ours) / m.final("parameter_error", arm="steps", rule=theirs)
    return error.map(lambda ratio: float(np.log10(ratio))).named(f"log10 error, {ours} against {theirs}")


@part.claim(
    "C8a",
    "with the best constant step, 2/(L + μ), the error after 12 loops is smaller than with 1/L",
    source="Beyond the source: Definition 8.7 allows any steps",
)
def best_constant(m: Measurements[Loops]) -> Judgement:
    return _log_ratio(m, "2/(L+mu)", "1/L").below(0)


@part.claim(
    "C8b",
    "with Chebyshev steps, one per loop, it is smaller than with the best constant step",
    source="Beyond the source: Definition 8.7 allows any steps",
)
def chebyshev(m: Measurements[Loops]) -> Judgement:
    return _log_ratio(m, "chebyshev", "2/(L+mu)").below(0)


@part.claim("C8c", "each rule keeps its own bound at every number of loops", source="Classical rates of each rule")
def rules_keep_bounds(m: Measurements[Loops]) -> Judgement:
    labels = ["rule", "seed", "step"]
    rows = m.rows(["parameter_error", "bound"], arm="steps").pivot("metric", index=labels, values="value")
    rows = kept(rows, pl.col("parameter_error") > FLOOR**0.5, "parameter_error", "bound")
    return worst(rows, pl.col("parameter_error") / pl.col("bound"), "error/bound").at_most(1, tolerance=1e-6)


@part.claim("C8d", "a step of 1.9/L still converges", source="Lemma 8.23 asks for η ≤ 1/L; η < 2/L suffices")
def below_limit(m: Measurements[Loops]) -> Judgement:
    return m.final("parameter_error", arm="step-limit", rule="1.9/L").at_most(1e-6)


@part.claim("N5", "a step of 2.1/L diverges", source="Control: η ≥ 2/L")
def above_limit(m: Measurements[Loops]) -> Judgement:
    error = m.final("parameter_error", arm="step-limit", rule="2.1/L").map(lambda value: float(np.log10(value)))
    return error.named("log10 of the parameter error after 200 loops").above(0)


@part.claim(
    "C4g",
    "the step is knowledge of the prompt: 1/L of typical prompts diverges on prompts twice as large",
    source="Remark 8.8",
    printed="the model has no prior knowledge of X",
)
def step_is_knowledge(m: Measurements[Loops]) -> Judgement:
    error = m.final("parameter_error", arm="fixed-step", scale=2.0).map(np.log10)
    return error.named("log10 of the parameter error after 50 loops").above(0)


@part.claim("N8", "on prompts of the expected size one fixed step converges", source="Control of C4g")
def expected_size(m: Measurements[Loops]) -> Judgement:
    return m.final("parameter_error", arm="fixed-step", scale=1.0).at_most(0.01)
