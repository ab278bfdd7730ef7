"""The claims on the trained diagonal model: C7 and C8 by descent, and what the rows of a batch decide."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, combine

from .arms import Params, part
from .theory import few_rows_ratio, needed_ratio

LEGAL = {"the sizes of the specification": lambda p: (p.diagonal_invariant, p.diagonal_dim) == (50, 297)}


@part.claim(
    "C7d",
    "Stochastic gradient descent on samples with weight decay is right on less than a hundredth of the inputs outside "
    "the training domain (r = 50, d = 297).",
    source="Proposition 6.3 bounds the population optimum by e^(−5) = 0.7 %",
    when=LEGAL,
)
def decayed_fails(m: Measurements[Params]) -> Judgement:
    return m.final("accuracy", arm="diagonal", method="weight decay").named("accuracy outside").at_most(0.01)


@part.claim(
    "C7e",
    "In the diagonal model descent with a hard limit on the number of features keeps invariant ones alone and is right "
    "on at least 99.9 % of inputs outside.",
    source="Lemma 6.2 and Proposition 6.3, by full-batch descent",
    when=LEGAL,
)
def limited_succeeds(m: Measurements[Params]) -> Judgement:
    right, alone = [], []
    for limit in m.params.limits:
        right.append(m.final("accuracy", arm="limited", limit=limit))
        kept = m.final("environmental_kept", arm="limited", limit=limit)
        alone.append(kept.map(lambda count: float(count == 0)))
    found = combine(min, right, "accuracy outside") * combine(min, alone, "invariant features alone")
    return found.named("accuracy outside, 0 where an environmental feature is kept").at_least(0.999)


@part.claim(
    "C8c",
    "In the diagonal model, with batches of twice as many rows as features, descent with the nuclear norm is right on "
    "at least 99 % of inputs outside the training domain.",
    source="Derived: the population norm is that of many rows",
    when={**LEGAL, "batches of twice the features": lambda p: 2.0 in p.row_shares},
    headline=True,
)
def many_rows(m: Measurements[Params]) -> Judgement:
    return m.final("accuracy", arm="rows", rows_share=2.0).named("accuracy outside").at_least(0.99)


@part.claim(
    "X8",
    "In the diagonal model, with batches of at most a quarter as many rows as features, descent with the nuclear norm "
    "keeps environmental features: it is wrong on at least 99 % of inputs outside.",
    source="Derived: few rows are nearly orthogonal and the norm a weighted ℓ2 norm; the source has 96 rows of 2,048",
    when={**LEGAL, "batches of a quarter of the features": lambda p: 0.25 in p.row_shares},
    headline=True,
)
def few_rows(m: Measurements[Params]) -> Judgement:
    few = [share for share in m.params.row_shares if share <= 0.25]
    found = [m.final("accuracy", arm="rows", rows_share=share) for share in few]
    return combine(max, found, "accuracy outside").at_most(0.01)


@part.claim(
    "N1",
    "Without any penalty descent on the diagonal model is wrong on most inputs outside the training domain, so that "
    "the penalty makes the difference.",
    source="control",
    when=LEGAL,
)
def nothing_without(m: Measurements[Params]) -> Judgement:
    return m.final("accuracy", arm="diagonal", method="no penalty").named("accuracy outside").at_most(0.5)


@part.phase(
    "P1",
    "With far fewer rows than features the nuclear norm of batches still makes the diagonal model right on most inputs "
    "outside its training domain (the smallest share of rows).",
    source="Derived, over γ and the number of features",
)
def few_rows_suffice(m: Measurements[Params]) -> Judgement:
    share = m.params.row_shares[0]
    return m.final("accuracy", arm="rows", rows_share=share).named("accuracy outside").above(0.5)


@part.boundary(
    "P1",
    says="It does where 6·(1/3 − γ²)/γ, the ratio of weights that few rows lead to, is above 2γ·(d − r)/r.",
    arms=("rows",),
)
def ratio_law(params: Params) -> float:
    problem = params.diagonal()
    return math.log(few_rows_ratio(problem) / needed_ratio(problem))
