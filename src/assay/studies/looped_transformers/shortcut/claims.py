"""The claim on the shortcut: the task is easier than regression (C7)."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, combine

from ..params import Prompts
from .arms import part

ROUNDING = 1e-12


@part.claim(
    "C7b",
    "One example gives an exact answer, ⟨αx/y, θ*⟩ = α, that is on average at least 0.5 away from θ*: the task needs "
    "no estimate of θ*.",
    source="Definition 8.4 and the remark after it; ‖θ*‖ = 1, and an answer that is not exact counts as no answer",
    printed="the task is as hard as regression; solving it requires an estimate of θ*",
    headline=True,
)
def exact_and_no_estimate(m: Measurements[Prompts]) -> Judgement:
    parts = [m.final(metric, arm="shortcut") for metric in ("task_error", "parameter_error")]

    def distance(of_seed: list[float]) -> float:
        error, apart = of_seed
        return apart if error <= ROUNDING else math.nan

    return combine(distance, parts, "‖q/α − θ*‖ of exact answers").at_least(0.5)
