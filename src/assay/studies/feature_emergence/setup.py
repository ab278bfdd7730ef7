"""From a study's parameters to its problem, stages and fits."""

from __future__ import annotations

from typing import Any

from .learners import Fit, Stages
from .problem import PatternProblem, label_counts
from .theory import third_stage_rate


def working_set(params: Any) -> float:
    """Bytes that one seed touches in a step: weights with Adam's moments, a batch, its activations and gates."""
    features = params.patterns if params.basis == "pattern" else params.dim
    neurons = 2 * params.half_width
    return 4.0 * (4 * neurons * features + params.batch * (features + 3 * neurons))


def problem_of(params: Any, inputs: str = "structured", basis: str | None = None) -> PatternProblem:
    if params.labels == "counts":
        counts = tuple(sorted(params.positive))
    else:
        counts = label_counts(params.labels, params.relevant, params.low, params.high)
    kind = "uniform" if inputs == "uniform" else params.structured
    return PatternProblem(params.dim, params.patterns, params.relevant, counts, kind, params.background,
                          negative_share=params.negative_share, basis=basis or params.basis)  # fmt: skip


def stages_of(params: Any) -> Stages:
    # The structured problem's constants serve the unstructured runs too, where γ may be 0.
    problem = problem_of(params)
    share = min(problem.positive_share, 1 - problem.positive_share)
    rarest = 1.0 if abs(share - 0.5) < 1e-9 else share
    return Stages(params.relevant, params.half_width, problem.class_gap, problem.scale, params.forget, rarest)


def fit_words(text: str) -> tuple[str, float]:
    name, _, rate = text.partition(" ")
    if name not in ("adam", "sgd") or not rate.replace(".", "", 1).replace("e-", "", 1).isdigit() or not float(rate):
        raise ValueError("write an optimizer and its rate, such as 'sgd 0.001' or 'adam 0.1'")
    return name, float(rate)


# Some methods are done within ten steps: looking early tells which is faster.
_EARLY = (1, 2, 3, 4, 6, 8)


def comparator_fit(params: Any, text: str) -> Fit:
    optimizer, rate = fit_words(text)
    return Fit(params.steps, params.batch, rate, rate, optimizer, max(4, params.steps // 20), _EARLY, cool=True)


def network_fit(params: Any) -> Fit:
    """Stage three: Adam with a falling rate, or the theory's own rate with plain gradient descent."""
    every = max(4, params.steps // 20)
    if params.stage_three == "theory":
        rate = third_stage_rate(params.relevant, params.half_width, params.steps)
        return Fit(params.steps, params.batch, rate, rate, "sgd", every, _EARLY, decay=params.decay)
    rates = params.output_rate, params.weight_rate
    return Fit(params.steps, params.batch, *rates, "adam", every, _EARLY, cool=True, decay=params.decay)
