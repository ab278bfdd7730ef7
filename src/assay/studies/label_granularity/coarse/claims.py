"""Claims about coarse labels: what they solve (C1) and lose (C2), whose growth they favour (C5), the log law (C8)."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, Values

from ..params import ABOVE
from .arms import SIGNS, Params, part
from .theory import fitted_constant, printed_log_law_constant

COARSE = {"arm": "coarse", "setting": "exact"}


@part.claim("C1a", "coarse training drives the training loss to zero", source="Theorem 5.1, (3)")
def training_loss(m: Measurements[Params]) -> Judgement:
    return m.final("train_loss", **COARSE).at_most(0.02)


@part.claim("C1b", "and the error on easy test samples", source="Theorem 5.1, (4)")
def easy_error(m: Measurements[Params]) -> Judgement:
    return m.final("easy_error", **COARSE).at_most(0.02)


@part.claim("C2a", "the same network errs on hard samples", source="Theorem 5.1, (5)", when=ABOVE)
def hard_error(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", **COARSE).at_least(0.4)


@part.claim("C2b", "at every time that was looked at", source="Theorem 5.1, (5): for all t", when=ABOVE)
def hard_error_always(m: Measurements[Params]) -> Judgement:
    curve = m.curve("hard_error", **COARSE)
    curve = curve.filter(curve["step"] >= 1)
    return m.per_seed(curve, lambda rows: rows["value"].min(), "least hard error from step 1 on").at_least(0.4)


@part.claim("C5a", "coarse labels: in the first step common detectors grow k times as fast", source="Theorem D.1")
def first_ratio(m: Measurements[Params]) -> Judgement:
    return _over_k(m, m.at("growth_ratio", 1, **COARSE)).between(0.9, 1.1)


@part.claim("C5b", "and the ratio of what they have grown is still k at the end", source="Lemma E.5")
def last_ratio(m: Measurements[Params]) -> Judgement:
    return _over_k(m, m.final("growth_ratio", **COARSE)).between(0.9, 1.1)


def _over_k(m: Measurements[Params], values: Values) -> Values:
    return values.map(lambda ratio: ratio / m.params.subclasses, "growth common/subclass, over k")


@part.claim("C5c", "it is of the order of k at all times", source="Lemma E.5: Θ(k)")
def ratio_always(m: Measurements[Params]) -> Judgement:
    return (m.every("growth_ratio", **COARSE) / m.params.subclasses).named("growth ratio over k").between(0.5, 2.0)


@part.claim(
    "C5g",
    "the common response does not level off: the output gains log 2 when the time doubles",
    source="Lemma E.4",
    printed="O(log d) for the common response and O(log d/k) for the others up to poly(d) steps: bounds, no level "
    "that is reached",
    when={"200 steps or more": lambda p: p.coarse_steps >= 200},
)
def no_plateau(m: Measurements[Params]) -> Judgement:
    last = m.params.coarse_steps
    late, half = ([m.at("own_output", step, superclass=y, **COARSE) for y in SIGNS] for step in (last, last // 2))
    gain = ((late[0] - half[0]) + (late[1] - half[1])) * 0.5
    return gain.named("output at T − output at T/2").between(0.85 * math.log(2), 1.15 * math.log(2))


def fitted_slopes(m: Measurements[Params], setting: str = "exact") -> list[Values]:
    """The slope of e^F over the later three quarters of training, for each superclass."""
    found = []
    last = m.params_of(setting).coarse_steps
    for y in SIGNS:
        curve = m.curve("own_output", arm="coarse", setting=setting, superclass=y)
        curve = curve.filter(curve["step"] >= last // 4)
        slope = m.per_seed(
            curve,
            lambda rows: fitted_constant(rows["step"].to_numpy(), rows["value"].to_numpy()),
            f"slope of e^F, {y}",
        )
        found.append(slope)
    return found


def slope_over_constant(m: Measurements[Params], counted: str, setting: str = "exact") -> Values:
    """The fitted slope over the corrected constant, which counts neurons that fire or detectors of the start."""
    parts = [
        slope / m.final("log_law_constant", arm="coarse", setting=setting, superclass=y, counted=counted)
        for y, slope in zip(SIGNS, fitted_slopes(m, setting), strict=True)
    ]
    return ((parts[0] + parts[1]) * 0.5).named("fitted/predicted slope")


@part.claim(
    "C8a",
    "the output grows as log(Ct + t0) with C = ηs*²/(2P)·(|S_com| + |S_sub|/k)(1 − ρ), counting neurons that fire",
    source="Lemma E.4, corrected",
    printed="C = ηs*/(2kP)",
)
def log_law(m: Measurements[Params]) -> Judgement:
    return slope_over_constant(m, "firing").between(0.9, 1.1)


@part.claim("C8b", "the printed constant is too small by more than a factor 10", source="Lemma E.4 as printed")
def printed_constant(m: Measurements[Params]) -> Judgement:
    p = m.params
    printed = printed_log_law_constant(p.rate, p.subclasses, p.feature_patches, p.patches)
    slopes = fitted_slopes(m)
    return ((slopes[0] + slopes[1]) * (0.5 / printed)).named("fitted/printed slope").above(10)


@part.claim(
    "C8c", "the law holds with jittered strengths too (ι = 0.1)", source="Lemma E.4, corrected", setting="jitter"
)
def log_law_jitter(m: Measurements[Params]) -> Judgement:
    return slope_over_constant(m, "firing", "jitter").between(0.9, 1.1)
