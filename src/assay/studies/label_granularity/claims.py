"""The claims of the theory (C1 to C8) and the controls, each with a criterion that can fail; more in *_claims.py."""

from __future__ import annotations

import math
from typing import Any

from assay.lab import Judgement, Measurements, Values

from . import hard_sample_claims, image_claims, theory  # noqa: F401 (claims register themselves)
from .dynamics import problem_of
from .study import study


def _critical(p: Any) -> float:
    return theory.critical_subclasses(problem_of(p))


ABOVE = {"k of at least 2.5 k*": lambda p: p.subclasses >= 2.5 * _critical(p)}


COARSE = {"arm": "coarse", "setting": "exact"}
FINE = {"arm": "fine", "setting": "exact"}


def _least_over_steps(m: Measurements, metric: str, first: int = 1, **where: Any) -> Values:
    curve = m.curve(metric, **where)
    curve = curve.filter(curve["step"] >= first)
    what = f"least {metric.replace('_', ' ')} from step {first} on"
    return m.per_seed(curve, lambda rows: rows["value"].min(), what)


@study.claim("C1a", "coarse training drives the training loss to zero", source="Theorem 5.1, (3)")
def coarse_loss(m: Measurements) -> Judgement:
    return m.final("train_loss", **COARSE).at_most(0.02)


@study.claim("C1b", "and the error on easy test samples", source="Theorem 5.1, (4)")
def coarse_easy(m: Measurements) -> Judgement:
    return m.final("easy_error", **COARSE).at_most(0.02)


@study.claim("C2a", "the same network errs on hard samples", source="Theorem 5.1, (5)", when=ABOVE)
def coarse_hard(m: Measurements) -> Judgement:
    return m.final("hard_error", **COARSE).at_least(0.4)


@study.claim("C2b", "at every time that was looked at", source="Theorem 5.1, (5): for all t", when=ABOVE)
def coarse_hard_always(m: Measurements) -> Judgement:
    return _least_over_steps(m, "hard_error", **COARSE).at_least(0.4)


_FINE_ERRORS = {
    "C3a": ("fine training, read out by the maximum, has no error on easy samples at T0", "easy_error_at_t0", 0.02),
    "C3b": ("nor on hard ones", "hard_error_at_t0", 0.05),
    "C3c": ("nor in the fine classes of easy samples", "easy_fine_error_at_t0", 0.05),
    "C3d": ("nor in the fine classes of hard samples", "hard_fine_error_at_t0", 0.05),
    "C3e": ("long after T0 hard samples are still right", "hard_error", 0.05),
    "C3f": ("and so are the fine classes of easy samples", "easy_fine_error", 0.02),
    "C3g": ("after finetuning on the superclasses hard samples are right", "finetuned_hard_error", 0.05),
}
for _id, (_statement, _metric, _level) in _FINE_ERRORS.items():

    @study.claim(_id, _statement, source="Theorem 5.2, Theorem G.3", when=ABOVE)
    def fine_error(m: Measurements, metric: str = _metric, level: float = _level) -> Judgement:
        return m.final(metric, **FINE).at_most(level)


@study.claim(
    "C3h",
    "finetuning never lowers any detector's response to its feature",
    source="The remark after Theorem G.3; the least change of any one detector in any step",
)
def finetuning_adds(m: Measurements) -> Judgement:
    every = m.every("least_response_change", **FINE)
    return every.named("change of a detector's response in a step").at_least(0, tolerance=1e-6)


@study.claim(
    "C4a",
    "every dictionary vector has m p1(1 − p2)^{d−1} detectors in the mean",
    source="Proposition 1, its expectation",
)
def detector_count(m: Measurements) -> Judgement:
    where = {"arm": "initial", "m": m.params.initial_neurons[-1]}
    ratio = m.final("mean_count", **where) / m.final("expected_count", **where)
    return ratio.named("mean count/expected").between(0.97, 1.03)


@study.claim(
    "C4b",
    "the counts of different vectors spread like independent draws, by 1/√λ of their mean λ",
    source="Proposition 1: counts are binomial",
    printed="|S*(v)|/|S(v')| = 1 ± O(log⁻⁵d), which needs λ ≫ log¹⁰d",
)
def count_spread(m: Measurements) -> Judgement:
    where = {"arm": "initial", "m": m.params.initial_neurons[-1]}
    spread = m.final("relative_spread", **where) * m.final("expected_count", **where).map(math.sqrt)
    return spread.named("relative spread × √λ").between(0.85, 1.15)


@study.claim("C4c", "common and subclass features get the same response before training", source="(8), Section 5.2")
def impartial(m: Measurements) -> Judgement:
    ratio = m.final("response_ratio", arm="initial", m=m.params.initial_neurons[-1])
    return ratio.named("response, common/subclass").between(0.85, 1.15)


@study.claim("C5a", "coarse labels: in the first step common detectors grow k times as fast", source="Theorem D.1")
def first_ratio(m: Measurements) -> Judgement:
    return _over_k(m, m.at("growth_ratio", 1, **COARSE)).between(0.9, 1.1)


@study.claim("C5b", "and the ratio of what they have grown is still k at the end", source="Lemma E.5")
def last_ratio(m: Measurements) -> Judgement:
    return _over_k(m, m.final("growth_ratio", **COARSE)).between(0.9, 1.1)


def _over_k(m: Measurements, values: Values) -> Values:
    return values.map(lambda ratio: ratio / m.params.subclasses, "growth common/subclass, over k")


@study.claim("C5c", "it is of the order of k at all times", source="Lemma E.5: Θ(k)")
def ratio_always(m: Measurements) -> Judgement:
    return (m.every("growth_ratio", **COARSE) / m.params.subclasses).named("growth ratio over k").between(0.5, 2.0)


for _id, _labels, _metric, _words in (
    ("C5d", "coarse", "common_over_predicted", "η·½·s*/(2P) for common detectors"),
    ("C5e", "coarse", "subclass_over_predicted", "η·½·s*/(2kP) for subclass detectors"),
    ("C6a", "fine", "common_over_predicted", "η·½·s*/(2kP) for common detectors"),
    ("C6b", "fine", "subclass_over_predicted", "η(1 − 1/(2k))s*/(2kP) for subclass detectors"),
):

    @study.claim(
        _id,
        f"{_labels} labels: the first update is {_words}",
        source="Theorem D.1" if _labels == "coarse" else "Lemma G.2",
    )
    def first_update(m: Measurements, labels: str = _labels, metric: str = _metric) -> Judgement:
        return m.final(metric, arm="first-step", labels=labels).named("update/predicted").between(0.99, 1.01)


@study.claim(
    "C5f",
    "all members of one detector set get the same update",
    source="Theorems D.1 and G.1; both label spaces, 3 steps",
)
def same_updates(m: Measurements) -> Judgement:
    every = m.every("spread_within_sets", arm="first-step")
    return every.named("difference within a set/largest update").at_most(0, tolerance=1e-9)


@study.claim(
    "C5g",
    "the common response does not level off: the output gains log 2 when the time doubles",
    source="Lemma E.4",
    printed="O(log d) for the common response and O(log d/k) for the others up to poly(d) steps: bounds, no level "
    "that is reached",
    when={"200 steps or more": lambda p: p.coarse_steps >= 200},
)
def no_plateau(m: Measurements) -> Judgement:
    last = m.params.coarse_steps
    gains = [m.at("own_output", last, superclass=y, **COARSE) - m.at("own_output", last // 2, superclass=y, **COARSE)
             for y in "+−"]  # fmt: skip
    return (
        ((gains[0] + gains[1]) * 0.5)
        .named("output at T − output at T/2")
        .between(0.85 * math.log(2), 1.15 * math.log(2))
    )


@study.claim(
    "C6c", "fine labels: common and subclass detectors start at the ratio k/(2k − 1)", source="Lemma G.2, t = 0"
)
def fine_ratio(m: Measurements) -> Judgement:
    predicted = m.params.subclasses / (2 * m.params.subclasses - 1)
    return (m.at("growth_ratio", 1, **FINE) / predicted).named("ratio/(k/(2k − 1))").between(0.95, 1.05)


@study.claim("C6d", "until T0 the common coefficient never falls below ¼", source="Lemma G.2: [¼, ⅔]")
def envelope_low(m: Measurements) -> Judgement:
    return m.every("lowest_coefficient", **FINE).at_least(1 / 4)


@study.claim("C6e", "nor rises above ⅔", source="Lemma G.2: [¼, ⅔]")
def envelope_high(m: Measurements) -> Judgement:
    return m.every("highest_coefficient", **FINE).at_most(2 / 3)


@study.claim(
    "C6f", "at T0 both kinds of detectors have grown by the same order", source="Corollary G.2.1, read with T0"
)
def comparable(m: Measurements) -> Judgement:
    return m.final("growth_ratio_at_t0", **FINE).between(1 / 4, 2 / 3)


@study.claim(
    "C6g",
    "T0 is what the first-step rates predict, 2kPB/(ηs*²(½|S_com| + (1 − 1/(2k))|S_sub|)), within 1.5 steps",
    source="Corollary G.2.1 solved for T0",
    printed="the corollary omits the factor T0",
)
def phase_time(m: Measurements) -> Judgement:
    return (m.final("t0", **FINE) - m.final("predicted_t0", **FINE)).named("T0 − predicted").between(-1.5, 1.5)


for _id, _kind in (("C6h", "common"), ("C6i", "subclass")):

    @study.claim(
        _id,
        f"at T0 the {_kind} detectors make up a part of the output that is of order one",
        source="Corollary G.2.1: Ω(1) without a constant; at least 0.1, beside the bound log 3/2 on the whole, is ours",
    )
    def of_order_one(m: Measurements, kind: str = _kind) -> Judgement:
        return m.final(f"{kind}_output_at_t0", **FINE).named(f"output made by {kind} detectors").at_least(0.1)


_INVARIANTS = {
    "C7a": ("no neuron ever fires on a noise patch", "noise_fires", "Lemma F.3", 0.0),
    "C7b": (
        "a neuron fires on no feature that it was not aligned with at first, up to four deviations of the noise",
        "unaligned_fires",
        "Lemma F.2",
        0.0,
    ),
    "C7c": ("no neuron's response to another class' feature ever rises", "foreign_rise", "Theorems F.1 and G.1", 1e-6),
    "C7d": (
        "leaving out neurons that cannot fire changes no output",
        "pruned_deviation",
        "Derived from Lemma F.2",
        1e-4,
    ),
    "C7e": (
        "nor does one fire on a feature that it missed by less than the noise",
        "near_threshold_fires",
        "Lemma F.2 by its own threshold, whose gap of log⁻⁵d asks for far less noise",
        0.0,
    ),
}
for _id, (_statement, _metric, _source, _tolerance) in _INVARIANTS.items():

    @study.claim(_id, _statement, source=f"{_source}; unpruned runs with all patches, both label spaces")
    def invariant(m: Measurements, metric: str = _metric, tolerance: float = _tolerance) -> Judgement:
        return (
            m.every(metric, arm="invariants", bias="tied")
            .named(metric.replace("_", " "))
            .at_most(0, tolerance=tolerance)
        )


def fitted_slopes(m: Measurements, setting: str = "exact") -> dict[str, Values]:
    """The slope of e^F over the later three quarters of training, for each superclass."""
    found = {}
    last = m.params_of(setting).coarse_steps  # type: ignore[attr-defined]
    for y in "+−":
        curve = m.curve("own_output", arm="coarse", setting=setting, superclass=y)
        curve = curve.filter(curve["step"] >= last // 4)
        found[y] = m.per_seed(
            curve,
            lambda rows: theory.fitted_constant(rows["step"].to_numpy(), rows["value"].to_numpy()),
            f"slope of e^F, {y}",
        )
    return found


def slope_over_constant(m: Measurements, counted: str, setting: str = "exact") -> Values:
    parts = [
        slope / m.final("log_law_constant", arm="coarse", setting=setting, superclass=y, counted=counted)
        for y, slope in fitted_slopes(m, setting).items()
    ]
    return ((parts[0] + parts[1]) * 0.5).named("fitted/predicted slope")


@study.claim(
    "C8a",
    "the output grows as log(Ct + t0) with C = ηs*²/(2P)·(|S_com| + |S_sub|/k)(1 − ρ), counting neurons that fire",
    source="Lemma E.4, corrected",
    printed="C = ηs*/(2kP)",
)
def log_law(m: Measurements) -> Judgement:
    return slope_over_constant(m, "firing").between(0.9, 1.1)


@study.claim("C8b", "the printed constant is too small by more than a factor 10", source="Lemma E.4 as printed")
def printed_constant(m: Measurements) -> Judgement:
    p = m.params
    printed = theory.printed_log_law_constant(p.rate, p.subclasses, p.feature_patches, p.patches)
    slopes = fitted_slopes(m)
    return ((slopes["+"] + slopes["−"]) * (0.5 / printed)).named("fitted/printed slope").above(10)


@study.claim(
    "C8c", "the law holds with jittered strengths too (ι = 0.1)", source="Lemma E.4, corrected", setting="jitter"
)
def log_law_jitter(m: Measurements) -> Judgement:
    return slope_over_constant(m, "firing", "jitter").between(0.9, 1.1)


@study.claim("N2", "without the falling bias, noise patches do fire", source="control for C7a")
def noise_without_bias(m: Measurements) -> Judgement:
    parts = [m.final("noise_fires", arm="invariants", bias="free", labels=who) for who in ("coarse", "fine")]
    return (parts[0] + parts[1]).named("noise patches × neurons that fire").above(0)


@study.claim(
    "N3",
    "as many classes, drawn at random within the superclasses for every fresh batch, leave hard samples wrong: more "
    "outputs are not the reason",
    source="control for C3",
    when=ABOVE,
)
def random_classes(m: Measurements) -> Judgement:
    return m.final("hard_error", arm="twins", labels="random anew").at_least(0.4)


@study.claim(
    "N4", "with the true subclasses the same finite set gives no error on hard samples", source="control", when=ABOVE
)
def true_classes(m: Measurements) -> Judgement:
    return m.final("hard_error", arm="twins", labels="fine").at_most(0.05)


__all__ = ["fitted_slopes", "slope_over_constant"]
