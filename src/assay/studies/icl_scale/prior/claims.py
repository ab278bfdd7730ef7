"""The claims on flipped labels (C6) and on attention (C7), in transformers with a prior: the source's are curves of
Llama models."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

FIGURES = "Figures 5.1 and 5.2, in small transformers; the source compares Llama models of 3B to 70B and prints curves"


def _accuracy(m: Measurements[Params], size: str, flipped: float) -> Values:
    return m.final("prior_accuracy", arm="prior", size=size, flipped=flipped)


@part.claim(
    "C6a",
    "A larger transformer trained mostly on one rule learns other rules from unflipped examples better than a smaller "
    "one trained on the same prompts.",
    source=FIGURES + ". On the prior rule both are right, so that the ability shows on random rules alone",
)
def larger_is_better(m: Measurements[Params]) -> Judgement:
    large, small = (m.final("random_accuracy", arm="prior", size=size) for size in ("large", "small"))
    return (large - small).named("accuracy on random rules, large − small").above(0)


@part.claim(
    "C6b",
    "Flipping all in-context labels costs a larger transformer more accuracy on its prior rule than a smaller one "
    "trained on the same prompts.",
    source=FIGURES,
    headline=True,
)
def larger_falls_more(m: Measurements[Params]) -> Judgement:
    falls = [_accuracy(m, size, 1.0) - _accuracy(m, size, 0.0) for size in ("large", "small")]
    return (falls[0] - falls[1]).named("change by flipping all, large − small").below(0)


@part.claim(
    "C6c",
    "A small transformer stays above 0.45 in accuracy on its prior rule when all in-context labels are flipped.",
    source=FIGURES + "; 0.05 below chance is the specification's",
)
def small_keeps_its_prior(m: Measurements[Params]) -> Judgement:
    return _accuracy(m, "small", 1.0).named("accuracy of the small one, all labels flipped").at_least(0.45)


@part.claim(
    "C6d",
    "A larger transformer falls below chance on its prior rule when all in-context labels are flipped.",
    source=FIGURES + "; it overrides its prior",
)
def large_overrides(m: Measurements[Params]) -> Judgement:
    return _accuracy(m, "large", 1.0).named("accuracy of the large one, all labels flipped").below(0.5)


@part.claim(
    "C6e",
    "With no labels flipped the small and the large transformer are equally right on their prior rule, to within 0.02.",
    source=FIGURES + "; the gap at 0 % of the source's figures is one in prior knowledge, which both have here",
)
def equal_on_the_prior(m: Measurements[Params]) -> Judgement:
    apart = (_accuracy(m, "large", 0.0) - _accuracy(m, "small", 0.0)).named("accuracy, large − small")
    return apart.equals(0.0, within=0.02, because="a margin of two in a hundred answers")


@part.claims_over(
    {"C7c": {"flipped": 0.0, "words": "right"}, "C7d": {"flipped": 1.0, "words": "flipped"}},
    statement="In its last layer a larger transformer trained mostly on one rule looks more at examples with {words} "
    "labels, against the query itself, than a smaller one.",
    source="Figure 5.3 in small transformers: examples, which the prior rule has no use for, in the place of the "
    "irrelevant sentence; the source compares two sizes of Llama and prints curves",
)
def larger_looks_at_examples(m: Measurements[Params], *, flipped: float) -> Judgement:
    large, small = (
        m.final("attention_to_examples", arm="prior", size=size, flipped=flipped) for size in ("large", "small")
    )
    ratio = (large / small).map(lambda value: math.log2(value))
    return ratio.named("log2 of attention to an example/to the query, large against small").above(0)


@part.claim(
    "N3",
    "A large transformer that saw no random rules in training keeps its accuracy on the prior rule when all in-context "
    "labels are flipped.",
    source="control: without rules of their own in training tasks there is no reason to read the examples",
)
def nothing_to_override(m: Measurements[Params]) -> Judgement:
    flipped = m.final("prior_accuracy", arm="no-random-rules", flipped=1.0)
    return flipped.named("accuracy, all labels flipped").at_least(0.95)
