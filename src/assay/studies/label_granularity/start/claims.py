"""Claims about the start: how many detectors there are (C4), and what the first updates do to them (C5, C6)."""

from __future__ import annotations

import math
from typing import Any

from assay.lab import Judgement, Measurements

from .arms import Params, part


def _most_neurons(m: Measurements[Params]) -> dict[str, Any]:
    return {"arm": "initial", "m": m.params.initial_neurons[-1]}


@part.claim(
    "C4a",
    "every dictionary vector has m p1(1 − p2)^{d−1} detectors in the mean",
    source="Proposition 1, its expectation",
)
def detector_count(m: Measurements[Params]) -> Judgement:
    where = _most_neurons(m)
    ratio = m.final("mean_count", **where) / m.final("expected_count", **where)
    return ratio.named("mean count/expected").between(0.97, 1.03)


@part.claim(
    "C4b",
    "the counts of different vectors spread like independent draws, by 1/√λ of their mean λ",
    source="Proposition 1: counts are binomial",
    printed="|S*(v)|/|S(v')| = 1 ± O(log⁻⁵d), which needs λ ≫ log¹⁰d",
)
def count_spread(m: Measurements[Params]) -> Judgement:
    where = _most_neurons(m)
    spread = m.final("relative_spread", **where) * m.final("expected_count", **where).map(math.sqrt)
    return spread.named("relative spread × √λ").between(0.85, 1.15)


@part.claim("C4c", "common and subclass features get the same response before training", source="(8), Section 5.2")
def impartial(m: Measurements[Params]) -> Judgement:
    return m.final("response_ratio", **_most_neurons(m)).named("response, common/subclass").between(0.85, 1.15)


@part.claims_over(
    {
        "C5d": {"labels": "coarse", "kind": "common", "update": "η·½·s*/(2P)", "theorem": "Theorem D.1"},
        "C5e": {"labels": "coarse", "kind": "subclass", "update": "η·½·s*/(2kP)", "theorem": "Theorem D.1"},
        "C6a": {"labels": "fine", "kind": "common", "update": "η·½·s*/(2kP)", "theorem": "Lemma G.2"},
        "C6b": {"labels": "fine", "kind": "subclass", "update": "η(1 − 1/(2k))s*/(2kP)", "theorem": "Lemma G.2"},
    },
    statement="{labels} labels: the first update is {update} for {kind} detectors",
    source="{theorem}",
)
def first_update(m: Measurements[Params], *, labels: str, kind: str) -> Judgement:
    ratio = m.final(f"{kind}_over_predicted", arm="first-step", labels=labels)
    return ratio.named("update/predicted").between(0.99, 1.01)


@part.claim(
    "C5f",
    "all members of one detector set get the same update",
    source="Theorems D.1 and G.1; both label spaces, 3 steps",
)
def same_updates(m: Measurements[Params]) -> Judgement:
    every = m.every("spread_within_sets", arm="first-step")
    return every.named("difference within a set/largest update").at_most(0, tolerance=1e-9)
