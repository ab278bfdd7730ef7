"""Claims about risk in the linear model: the trade-off, its reversal and its end (C6)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from assay.lab import Exact, Judgement, Measurements, Values, combine, pick

from .arms import PRIVATE, Params, part

SIZE: dict[str, Any] = {
    "10 shared of 20 features": lambda p: (p.risk_shared, p.risk_relevant) == (10, 20),
    "4 and 32 tasks and 5, 10, 15 and 40 labels": lambda p: (
        {4, 32} <= set(p.risk_tasks) and {5, 10, 15, 40} <= set(p.risk_labels)
    ),
}
MODEL = "linear tasks with s = 10, r = 20; smallest interpolant or norm-bounded least squares"


def _risk(m: Measurements[Params], tasks: int, private: float, labels: int) -> Values:
    return m.final("risk", arm="probe", tasks=tasks, private=private, labels=labels)


def _lead(m: Measurements[Params], tasks: int, private: float, labels: int) -> Values:
    gap = _risk(m, tasks, private, labels) - _risk(m, 1, private, labels)
    return gap.named("risk, universal − specific")


def _farthest(gaps: Iterable[float]) -> float:
    """For ``pick``: the part whose mean is farthest from 0."""
    return max(gaps, key=abs)


@part.claims_over(
    {
        "C6a": {"tasks": 32, "private": 0.5, "words": "half"},
        "C6b": {"tasks": 4, "private": 0.5, "words": "half"},
        "C6c": {"tasks": 32, "private": 0.9, "words": "nine tenths"},
    },
    statement="With 10 labels and {words} of the label private, a linear predictor has a higher risk on the encoder of "
    "{tasks} tasks than on the target's own.",
    source="Propositions 7.3 and 7.4; " + MODEL,
    when=SIZE,
)
def universal_is_worse(m: Measurements[Params], *, tasks: int, private: float) -> Judgement:
    return _lead(m, tasks, private, 10).above(0)


@part.claim(
    "C6d",
    "The trade-off vanishes with many labels in the linear model: 40 labels fit 20 features exactly on the encoder of "
    "32 tasks.",
    source="C6: it shows with few labels; " + MODEL,
    when=SIZE,
)
def vanishes(m: Measurements[Params]) -> Judgement:
    return m.every("risk", arm="probe", tasks=32, labels=40).named("risk on 32 tasks' encoder").at_most(1e-9)


@part.claim(
    "C6e",
    "With half of the label private, the encoder of 32 linear tasks has a larger excess risk over the target's own "
    "encoder at 10 labels than at 15.",
    source="C6, as the paired difference between fewer and more labels, neither of which fit exactly; " + MODEL,
    headline=True,
    when=SIZE,
)
def fewer_against_more(m: Measurements[Params]) -> Judgement:
    gap = _lead(m, 32, 0.5, 10) - _lead(m, 32, 0.5, 15)
    return gap.named("risk, universal − specific, at 10 − at 15 labels").above(0)


@part.claim(
    "N6",
    "With 10 labels and a tenth of the label private the trade-off turns around: a linear predictor has a lower risk "
    "on the encoder of 4 tasks than on the target's own encoder.",
    source="control: the ratio of the bounds is below 1 there; " + MODEL,
    when=SIZE,
)
def reversed_case(m: Measurements[Params]) -> Judgement:
    return _lead(m, 4, 0.1, 10).below(0)


@part.claim(
    "N7",
    "Where a tenth of the label is private, the leading term of the bound is lower for 4 tasks than for the target "
    "alone.",
    source="control: the formula's side of the reversed case",
    when=SIZE,
)
def reversed_bound(m: Measurements[Params]) -> Judgement:
    four, one = (m.exact("leading", arm="probe", tasks=t, private=0.1, labels=10).value for t in (4, 1))
    return Exact(four / one, "leading term, T = 4 / T = 1").below(1)


@part.claim(
    "C6f",
    "For r = 2s and labels half private the leading terms of the two risk bounds have the ratio (T + 1)/(2√T).",
    source="Section 7.2.2: √T worse; the exact constant is derived",
    printed="the universal error is O(L√(T/m)‖u‖), the specific one O(L√(r/m)‖u‖): a factor r is lost in the first",
)
def ratio(m: Measurements[Params]) -> Judgement:
    return m.every(["ratio_error", "general_error"], arm="formulas").named("|ratio − formula|").at_most(1e-12)


@part.claim(
    "C6g",
    "The Rademacher complexity of the norm-bounded predictors never exceeds the leading term of the risk bound.",
    source="proof of Proposition 7.3; by Jensen's inequality no further term is needed; 2 % for 20,000 draws",
    printed="a further O(√(r/(sα + (r − s)β))) in the bracket",
)
def complexity(m: Measurements[Params]) -> Judgement:
    found = m.every("complexity", arm="probe") / m.every("leading", arm="probe")
    return found.named("complexity / leading term").at_most(1, tolerance=0.02)


@part.claim(
    "C6h",
    "The absolute error of linear predictors stays below the risk bound, on specific and universal encoders, at every "
    "number of labels.",
    source="Propositions 7.3 and 7.4 with δ = 0.05, L = 1",
)
def bound_holds(m: Measurements[Params]) -> Judgement:
    found = m.every("absolute_risk", arm="probe") / m.every("bound", arm="probe")
    return found.named("absolute risk / bound").at_most(1)


@part.claim(
    "X4a",
    "The risk bounds are vacuous at these sizes: they exceed the error of the predictor 0 at every number of labels.",
    source="beyond the source: why directions and not levels are compared",
)
def vacuous(m: Measurements[Params]) -> Judgement:
    found = m.every("bound", arm="probe") / m.every("trivial", arm="probe")
    return found.named("bound / error of predicting 0").at_least(1)


@part.claim(
    "X4b",
    "More labels can hurt on a universal encoder: its risk for private halves is higher at 10 labels (m = s) than at "
    "5.",
    source="beyond the source: where shared features alone interpolate; found by looking on other seeds; " + MODEL,
    when=SIZE,
)
def not_monotone(m: Measurements[Params]) -> Judgement:
    gap = _risk(m, 32, 0.5, 10) - _risk(m, 32, 0.5, 5)
    return gap.named("risk on 32 tasks' encoder, 10 − 5 labels").above(0)


@part.claim(
    "X4c",
    "With 10 labels and a tenth of the label private a linear predictor has a lower risk on the encoder of 32 tasks "
    "than on the target's own encoder, although its risk bound is higher.",
    source="beyond the source: the bounds are not tight; their ratio is 1.45; " + MODEL,
    when=SIZE,
)
def bounds_mislead(m: Measurements[Params]) -> Judgement:
    universal, specific = (m.final("leading", arm="probe", tasks=t, private=0.1, labels=10) for t in (32, 1))
    parts = [_lead(m, 32, 0.1, 10), 1 - universal / specific]
    return combine(max, parts, "larger of risk, universal − specific, and 1 − ratio of the leading terms").below(0)


@part.claim(
    "C6i",
    "On its own task the specific encoder has the risk of an interpolant on m of r equal features, 1 − m/r, within 3 % "
    "of the label's variance, at every number of labels m < r tried.",
    source="closed form for Gaussian features; 3 % of the variance for the draws; all private shares of the label",
    when={**SIZE, "2,000 draws over all seeds": lambda p: p.risk_draws >= 250},
)
def specific_form(m: Measurements[Params]) -> Judgement:
    gaps = []
    for private, labels in product(PRIVATE, [n for n in m.params.risk_labels if n < m.params.risk_relevant]):
        where: dict[str, Any] = {"arm": "probe", "tasks": 1, "private": private, "labels": labels}
        gaps.append(m.final("risk", **where) - m.exact("specific", **where).value)
    found = pick(_farthest, gaps).named("risk − (1 − m/r), the case farthest from it")
    return found.equals(0, within=0.03, because="3 % of the label's variance")


@part.claim(
    "C6j",
    "On another task the specific encoder keeps an error that no labels remove: with the most labels its risk is the "
    "private share, within 5 %.",
    source="Proposition 7.4: min_u E(uᵀz_S − y)² = v₂; 5 % for the finite number of labels",
    when={"at least 1,000 labels for 10 shared features": lambda p: max(p.floor_labels) >= 100 * p.risk_shared},
)
def floor(m: Measurements[Params]) -> Judgement:
    most = max(m.params.floor_labels)
    found = m.final("risk", arm="other-task", labels=most, private=0.5) / 0.5
    return found.named(f"risk on another task / v₂, {most} labels").equals(
        1, within=0.05, because="finitely many labels"
    )


@part.claim(
    "C6k",
    "On another task the specific encoder's risk is v₂(m − 1)/(m − s − 1), that of least squares with the private part "
    "as noise, within 10 % at every number of labels m tried.",
    source="Derived: the floor v₂ of Proposition 7.4 at a finite number of labels; 10 % for the draws",
)
def floor_form(m: Measurements[Params]) -> Judgement:
    gaps = []
    for private, labels in product(PRIVATE, m.params.floor_labels):
        where: dict[str, Any] = {"arm": "other-task", "labels": labels, "private": private}
        gaps.append(m.final("risk", **where) / m.exact("predicted", **where).value - 1)
    found = pick(_farthest, gaps).named("risk / predicted − 1, the case farthest from it")
    return found.equals(0, within=0.1, because="10 % for the draws")
