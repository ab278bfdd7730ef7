"""Claims about fine labels: what they solve (C3), and how common and subclass detectors grow until T0 (C6)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..params import ABOVE
from .arms import Params, part

FINE = {"arm": "fine", "setting": "exact"}
_THEOREMS = "Theorem 5.2, Theorem G.3"


@part.claim(
    "C3a",
    "fine training, read out by the maximum, has no error on easy samples at T0",
    source=_THEOREMS,
    when=ABOVE,
)
def easy_at_t0(m: Measurements[Params]) -> Judgement:
    return m.final("easy_error_at_t0", **FINE).at_most(0.02)


@part.claim("C3b", "nor on hard ones", source=_THEOREMS, when=ABOVE)
def hard_at_t0(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error_at_t0", **FINE).at_most(0.05)


@part.claim("C3c", "nor in the fine classes of easy samples", source=_THEOREMS, when=ABOVE)
def easy_classes_at_t0(m: Measurements[Params]) -> Judgement:
    return m.final("easy_fine_error_at_t0", **FINE).at_most(0.05)


@part.claim("C3d", "nor in the fine classes of hard samples", source=_THEOREMS, when=ABOVE)
def hard_classes_at_t0(m: Measurements[Params]) -> Judgement:
    return m.final("hard_fine_error_at_t0", **FINE).at_most(0.05)


@part.claim("C3e", "long after T0 hard samples are still right", source=_THEOREMS, when=ABOVE)
def hard_at_end(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", **FINE).at_most(0.05)


@part.claim("C3f", "and so are the fine classes of easy samples", source=_THEOREMS, when=ABOVE)
def easy_classes_at_end(m: Measurements[Params]) -> Judgement:
    return m.final("easy_fine_error", **FINE).at_most(0.02)


@part.claim("C3g", "after finetuning on the superclasses hard samples are right", source=_THEOREMS, when=ABOVE)
def hard_after_finetuning(m: Measurements[Params]) -> Judgement:
    return m.final("finetuned_hard_error", **FINE).at_most(0.05)


@part.claim(
    "C3h",
    "finetuning never lowers any detector's response to its feature",
    source="The remark after Theorem G.3; the least change of any one detector in any step",
)
def finetuning_adds(m: Measurements[Params]) -> Judgement:
    every = m.every("least_response_change", **FINE)
    return every.named("change of a detector's response in a step").at_least(0, tolerance=1e-6)


@part.claim(
    "C6c", "fine labels: common and subclass detectors start at the ratio k/(2k − 1)", source="Lemma G.2, t = 0"
)
def first_ratio(m: Measurements[Params]) -> Judgement:
    predicted = m.params.subclasses / (2 * m.params.subclasses - 1)
    return (m.at("growth_ratio", 1, **FINE) / predicted).named("ratio/(k/(2k − 1))").between(0.95, 1.05)


@part.claim("C6d", "until T0 the common coefficient never falls below ¼", source="Lemma G.2: [¼, ⅔]")
def envelope_low(m: Measurements[Params]) -> Judgement:
    return m.every("lowest_coefficient", **FINE).at_least(1 / 4)


@part.claim("C6e", "nor rises above ⅔", source="Lemma G.2: [¼, ⅔]")
def envelope_high(m: Measurements[Params]) -> Judgement:
    return m.every("highest_coefficient", **FINE).at_most(2 / 3)


@part.claim("C6f", "at T0 both kinds of detectors have grown by the same order", source="Corollary G.2.1, read with T0")
def comparable(m: Measurements[Params]) -> Judgement:
    return m.final("growth_ratio_at_t0", **FINE).between(1 / 4, 2 / 3)


@part.claim(
    "C6g",
    "T0 is what the first-step rates predict, 2kPB/(ηs*²(½|S_com| + (1 − 1/(2k))|S_sub|)), within 1.5 steps",
    source="Corollary G.2.1 solved for T0",
    printed="the corollary omits the factor T0",
)
def phase_time(m: Measurements[Params]) -> Judgement:
    return (m.final("t0", **FINE) - m.final("predicted_t0", **FINE)).named("T0 − predicted").between(-1.5, 1.5)


@part.claims_over(
    {"C6h": {"kind": "common"}, "C6i": {"kind": "subclass"}},
    statement="at T0 the {kind} detectors make up a part of the output that is of order one",
    source="Corollary G.2.1: Ω(1) without a constant; at least 0.1, beside the bound log 3/2 on the whole, is ours",
)
def of_order_one(m: Measurements[Params], *, kind: str) -> Judgement:
    return m.final(f"{kind}_output_at_t0", **FINE).named(f"output made by {kind} detectors").at_least(0.1)
