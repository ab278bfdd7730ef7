"""Claims about fine labels: what they solve (C3), and how common and subclass detectors grow until T0 (C6).

Most are judged twice: with exact patch counts, and with random ones, which are the source's own law.
"""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements

from ..params import ABOVE, EXACT, RANDOM
from .arms import Params, part
from .theory import fine_common_envelope, fine_ratio_envelope

_THEOREMS = "Theorem 5.2, Theorem G.3"
_COROLLARY = "Corollary G.2.1, read with T0"


def fine(setting: str) -> dict[str, Any]:
    return {"arm": "fine", "setting": setting}


@part.claims_over(
    {"C3a": EXACT, "C3j": RANDOM},
    statement="Trained on subclass labels and read out by the maximum, a network gets the superclass of at most 2 % of "
    "easy samples wrong at T0 ({law}).",
    source=_THEOREMS,
    when=ABOVE,
)
def easy_at_t0(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("easy_error_at_t0", **fine(setting)).at_most(0.02)


@part.claims_over(
    {"C3b": {**EXACT, "headline": True}, "C3k": RANDOM},
    statement="Trained on subclass labels and read out by the maximum, a network gets at least 95 % of hard samples "
    "right early in training (at T0; {law}).",
    source=_THEOREMS,
    when=ABOVE,
)
def hard_at_t0(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("hard_error_at_t0", **fine(setting)).at_most(0.05)


@part.claims_over(
    {
        "C3c": {**EXACT, "samples": "easy"},
        "C3d": {**EXACT, "samples": "hard"},
        "C3l": {**RANDOM, "samples": "easy"},
        "C3m": {**RANDOM, "samples": "hard"},
    },
    statement="A network trained on subclass labels until T0 names the subclass of at least 95 % of {samples} samples "
    "({law}).",
    source=_THEOREMS,
    when=ABOVE,
)
def classes_at_t0(m: Measurements[Params], *, setting: str, samples: str) -> Judgement:
    return m.final(f"{samples}_fine_error_at_t0", **fine(setting)).at_most(0.05)


@part.claims_over(
    {"C3e": EXACT, "C3n": RANDOM},
    statement="Trained on subclass labels long past T0, a network read out by the maximum gets at least 95 % of hard "
    "samples right ({law}).",
    source=_THEOREMS,
    when=ABOVE,
)
def hard_at_end(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("hard_error", **fine(setting)).at_most(0.05)


@part.claims_over(
    {"C3f": EXACT, "C3o": RANDOM},
    statement="Trained on subclass labels long past T0, a network names the subclass of at least 98 % of easy samples "
    "({law}).",
    source=_THEOREMS,
    when=ABOVE,
)
def easy_classes_at_end(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("easy_fine_error", **fine(setting)).at_most(0.02)


@part.claims_over(
    {"C3g": EXACT, "C3p": RANDOM},
    statement="Pretrained on subclass labels and then finetuned on superclass labels, a network gets at least 95 % of "
    "hard samples right ({law}).",
    source=_THEOREMS,
    when=ABOVE,
)
def hard_after_finetuning(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("finetuned_hard_error", **fine(setting)).at_most(0.05)


@part.claims_over(
    {"C3h": EXACT, "C3q": RANDOM},
    statement="Finetuning on superclass labels after subclass labels never lowers any detector's response to its "
    "feature ({law}).",
    source="The remark after Theorem G.3; the least change of any one detector in any step",
)
def finetuning_adds(m: Measurements[Params], *, setting: str) -> Judgement:
    every = m.every("least_response_change", **fine(setting))
    return every.named("change of a detector's response in a step").at_least(0, tolerance=1e-6)


@part.claims_over(
    {"C6c": EXACT, "C6j": RANDOM},
    statement="With subclass labels the first step moves common detectors k/(2k − 1) times as far as subclass "
    "detectors ({law}).",
    source="Lemma G.2, t = 0",
)
def first_ratio(m: Measurements[Params], *, setting: str) -> Judgement:
    predicted = m.params.subclasses / (2 * m.params.subclasses - 1)
    ratio = (m.at("growth_ratio", 1, **fine(setting)) / predicted).named("ratio/(k/(2k − 1))")
    return ratio.equals(1, within=0.05, because="one twentieth, set before any run")


@part.claims_over(
    {"C6d": EXACT, "C6k": RANDOM},
    statement="With subclass labels the coefficient of a common detector's updates never falls below ¼ until an output "
    "reaches log 3/2 ({law}).",
    source="Lemma G.2: [¼, ⅔], while no output exceeds log 3/2",
)
def envelope_low(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.every("lowest_coefficient", **fine(setting)).at_least(fine_common_envelope(m.params.subclasses)[0])


@part.claims_over(
    {"C6e": EXACT, "C6l": RANDOM},
    statement="With subclass labels the coefficient of a common detector's updates never rises above ⅔ until an output "
    "reaches log 3/2 ({law}).",
    source="Lemma G.2: [¼, ⅔], while no output exceeds log 3/2",
)
def envelope_high(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.every("highest_coefficient", **fine(setting)).at_most(fine_common_envelope(m.params.subclasses)[1])


@part.claims_over(
    {"C6f": {**EXACT, "headline": True}, "C6m": RANDOM},
    statement="With subclass labels, detectors of common and of subclass features have grown by the same order at T0 "
    "({law}).",
    source=f"{_COROLLARY}; the range of the ratio is Lemma G.2's, [¼, ⅔] up to 1 ± O(1/k)",
)
def comparable(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("growth_ratio_at_t0", **fine(setting)).between(*fine_ratio_envelope(m.params.subclasses))


@part.claims_over(
    {"C6g": EXACT, "C6n": RANDOM},
    statement="With subclass labels an output reaches log 3/2 (T0) within 1.5 steps of what the first update predicts "
    "({law}).",
    source="Corollary G.2.1 solved for T0 = 2kPB/(ηs*²(½|S_com| + (1 − 1/(2k))|S_sub|))",
    printed="the corollary omits the factor T0",
)
def phase_time(m: Measurements[Params], *, setting: str) -> Judgement:
    late = m.final("t0", **fine(setting)) - m.final("predicted_t0", **fine(setting))
    because = "T0 is a whole step, and the prediction counts detectors of the start alone"
    return late.named("T0 − predicted").equals(0, within=1.5, because=because)


@part.claims_over(
    {
        "C6h": {**EXACT, "kind": "common", "part": "¼"},
        "C6i": {**EXACT, "kind": "subclass", "part": "(1 − 3/(4k))"},
        "C6o": {**RANDOM, "kind": "common", "part": "¼"},
        "C6p": {**RANDOM, "kind": "subclass", "part": "(1 − 3/(4k))"},
    },
    statement="With subclass labels, n {kind} detectors make at least {part}·n/(⅔S + (1 − 1/(3k))S′) of the output log "
    "3/2 at T0, where S and S′ neurons fire on common and subclass features ({law}).",
    source="Corollary G.2.1: Ω(1), with the constants that Lemma G.2's ranges give it for the detectors of each "
    "network, in the mean over its classes and with the largest ⅔S + (1 − 1/(3k))S′ among them",
)
def of_order_one(m: Measurements[Params], *, setting: str, kind: str) -> Judgement:
    made = m.final(f"{kind}_output_at_t0", **fine(setting)) / m.final(f"least_{kind}_output", **fine(setting))
    return made.named(f"output made by {kind} detectors/guaranteed").at_least(1)
