"""Claims about the start: how many detectors there are (C4), and what the first updates do to them (C5, C6).

The first updates are taken with exact patch counts, of which the formulas speak; with random ones see C5n and C6j.
"""

from __future__ import annotations

import math
from typing import Any

from assay.lab import Judgement, Measurements

from ..theory import expected_detectors, normal_tail
from .arms import Params, part

_TWICE = "twice the standard error of one network's"
_COARSE = {"labels": "coarse", "given": "superclass", "theorem": "Theorem D.1"}
_FINE = {"labels": "fine", "given": "subclass", "theorem": "Lemma G.2"}


def _most_neurons(m: Measurements[Params]) -> dict[str, Any]:
    return {"arm": "initial", "m": m.params.initial_neurons[-1]}


@part.claim(
    "C4a",
    "Before training, the mean number of detector neurons per feature is m p1(1 − p2)^(d−1), as the theory predicts.",
    source="Proposition 1, its expectation",
)
def detector_count(m: Measurements[Params]) -> Judgement:
    where = _most_neurons(m)
    ratio = m.final("mean_count", **where) / m.final("expected_count", **where)
    error = 2 / math.sqrt(m.params.dim * expected_detectors(where["m"], m.params.threshold, m.params.dim))
    return ratio.named("mean count/expected").equals(1, within=error, because=f"{_TWICE} mean count, 2/√(dλ)")


@part.claim(
    "C4b",
    "Before training, the numbers of detectors of different features spread like independent draws, by 1/√λ of their "
    "mean λ.",
    source="Proposition 1: counts are binomial",
    printed="|S*(v)|/|S(v')| = 1 ± O(log⁻⁵d), which needs λ ≫ log¹⁰d",
)
def count_spread(m: Measurements[Params]) -> Judgement:
    where = _most_neurons(m)
    spread = m.final("relative_spread", **where) * m.final("expected_count", **where).map(math.sqrt)
    error = 2 / math.sqrt(2 * (m.params.dim - 1))
    because = f"{_TWICE} spread over d features, 2/√(2(d − 1))"
    return spread.named("relative spread × √λ").equals(1, within=error, because=because)


@part.claim(
    "C4c",
    "Before training, the network responds equally to common and to subclass features.",
    source="(8), Section 5.2",
)
def impartial(m: Measurements[Params]) -> Judgement:
    where, k = _most_neurons(m), m.params.subclasses
    error = 2 * math.sqrt((1 + 1 / k) / (where["m"] * normal_tail(m.params.threshold)))
    ratio = m.final("response_ratio", **where).named("response, common/subclass")
    return ratio.equals(1, within=error, because=f"{_TWICE} ratio, 2√((1 + 1/k)/(mQ(τ)))")


@part.claims_over(
    {
        "C5d": {**_COARSE, "kind": "common", "update": "η·½·s*/(2P)"},
        "C5e": {**_COARSE, "kind": "subclass", "update": "η·½·s*/(2kP)"},
        "C6a": {**_FINE, "kind": "common", "update": "η·½·s*/(2kP)"},
        "C6b": {**_FINE, "kind": "subclass", "update": "η(1 − 1/(2k))s*/(2kP)"},
    },
    statement="With {given} labels on nearly noiseless samples the first update moves detectors of a {kind} feature by "
    "{update}, in the mean and within 1 %.",
    source="{theorem}",
)
def first_update(m: Measurements[Params], *, labels: str, kind: str) -> Judgement:
    ratio = m.final(f"{kind}_over_predicted", arm="first-step", labels=labels)
    because = "the outputs of the start move the factor ½ or 1/(2k) by less than a hundredth"
    return ratio.named("update/predicted").equals(1, within=0.01, because=because)


@part.claims_over(
    {"C5i": {"kind": "common", "factor": ""}, "C5j": {"kind": "subclass", "factor": "k"}},
    statement="With superclass labels the first update of {kind} detectors carries noise of deviation "
    "½ησ√s*/(P√(2N{factor})) in other directions.",
    source="Theorem D.1, the noise of the update; dictionary vectors that no data show",
    when={"dictionary vectors that no data show": lambda p: 2 * p.subclasses + 2 < p.dim},
)
def first_noise(m: Measurements[Params], *, kind: str) -> Judgement:
    ratio = m.final(f"{kind}_noise_over_predicted", arm="first-step", labels="coarse")
    unseen = 2 * (m.params.dim - 2 * m.params.subclasses - 2)
    error = 2 / math.sqrt(2 * unseen * (m.params.subclasses if kind == "subclass" else 1))
    because = f"{_TWICE} deviation over these directions and sets of detectors"
    return ratio.named("deviation/predicted").equals(1, within=error, because=because)


@part.claim(
    "C5f",
    "In the first three steps on nearly noiseless samples all detectors of one feature in one class get the same "
    "update, whichever labels are trained on.",
    source="Theorems D.1 and G.1; both label spaces, 3 steps",
)
def same_updates(m: Measurements[Params]) -> Judgement:
    every = m.every("spread_within_sets", arm="first-step")
    return every.named("difference within a set/largest update").at_most(0, tolerance=1e-9)
