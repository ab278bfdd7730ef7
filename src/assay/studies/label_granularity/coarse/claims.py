"""Claims about coarse labels: what they solve (C1) and lose (C2), whose growth they favour (C5), the log law (C8).

Most are judged twice: with exact patch counts, and with random ones, which are the source's own law.
"""

from __future__ import annotations

import math
from typing import Any

from assay.lab import Judgement, Measurements, Values, pool

from ..params import ABOVE, EXACT, RANDOM
from ..theory import critical_subclasses
from .arms import SIGNS, Params, part
from .theory import fitted_constant, printed_log_law_constant

_TENTH = "one tenth, set before any run"
_LONG = {"200 steps or more": lambda p: p.coarse_steps >= 200}
_TIED = {"biases that fall": lambda p: p.bias_rate > 0}


def coarse(setting: str) -> dict[str, Any]:
    return {"arm": "coarse", "setting": setting}


@part.claims_over(
    {"C1a": EXACT, "C1d": RANDOM},
    statement="Training on superclass labels takes the loss of the theory's network on hierarchical patches to 0.02 "
    "or less ({law}).",
    source="Theorem 5.1, (3)",
)
def training_loss(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("train_loss", **coarse(setting)).at_most(0.02)


@part.claims_over(
    {"C1b": EXACT, "C1e": RANDOM},
    statement="A network trained on superclass labels gets at most 2 % of easy samples wrong, which show their "
    "superclass' common feature ({law}).",
    source="Theorem 5.1, (4)",
)
def easy_error(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("easy_error", **coarse(setting)).at_most(0.02)


@part.claims_over(
    {"C2a": {**EXACT, "headline": True}, "C2j": RANDOM},
    statement="A network trained on superclass labels ends with 40 % or more of the hard samples wrong, which lack "
    "the common feature ({law}).",
    source="Theorem 5.1, (5)",
    when=ABOVE,
)
def hard_error(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("hard_error", **coarse(setting)).at_least(0.4)


@part.claims_over(
    {"C2b": EXACT, "C2k": RANDOM},
    statement="Trained on superclass labels, a network gets 40 % or more of hard samples, which lack the common "
    "feature, wrong at every step looked at ({law}).",
    source="Theorem 5.1, (5): for all t",
    when=ABOVE,
)
def hard_error_always(m: Measurements[Params], *, setting: str) -> Judgement:
    curve = m.curve("hard_error", **coarse(setting))
    curve = curve.filter(curve["step"] >= 1)
    least = m.per_seed(
        curve, lambda rows: rows["value"].min(), "least hard error from step 1 on", trials=int(curve["trials"][0])
    )
    return least.at_least(0.4)


@part.claims_over(
    {"C5a": {**EXACT, "headline": True}, "C5n": RANDOM},
    statement="With superclass labels the first step moves detectors of the common feature k times as far as subclass "
    "detectors ({law}).",
    source="Theorem D.1",
)
def first_ratio(m: Measurements[Params], *, setting: str) -> Judgement:
    return _over_k(m, m.at("growth_ratio", 1, **coarse(setting))).equals(1, within=0.1, because=_TENTH)


@part.claims_over(
    {"C5b": EXACT, "C5o": RANDOM},
    statement="At the end of training on superclass labels, common detectors have grown k times as far as subclass "
    "detectors ({law}).",
    source="Lemma E.5",
)
def last_ratio(m: Measurements[Params], *, setting: str) -> Judgement:
    return _over_k(m, m.final("growth_ratio", **coarse(setting))).equals(1, within=0.1, because=_TENTH)


def _over_k(m: Measurements[Params], values: Values) -> Values:
    return values.map(lambda ratio: ratio / m.params.subclasses, "growth common/subclass, over k")


@part.claims_over(
    {"C5c": EXACT, "C5p": RANDOM},
    statement="With superclass labels, common detectors have grown k/2 to 2k times as far as subclass detectors at "
    "every step looked at ({law}).",
    source="Lemma E.5: Θ(k)",
)
def ratio_always(m: Measurements[Params], *, setting: str) -> Judgement:
    every = m.every("growth_ratio", **coarse(setting)) / m.params.subclasses
    return every.named("growth ratio over k").between(0.5, 2.0)


@part.claims_over(
    {"C5g": EXACT, "C5q": RANDOM},
    statement="With superclass labels the right class' output gains log 2, within 15 %, over the second half of "
    "training ({law}).",
    source="Lemma E.4",
    printed="O(log d) for the common response and O(log d/k) for the others up to poly(d) steps: bounds, no level "
    "that is reached",
    when=_LONG,
)
def no_plateau(m: Measurements[Params], *, setting: str) -> Judgement:
    last = m.params_of(setting).coarse_steps
    late, half = (
        [m.at("own_output", step, superclass=y, **coarse(setting)) for y in SIGNS] for step in (last, last // 2)
    )
    gain = ((late[0] - half[0]) + (late[1] - half[1])) * 0.5
    because = "0.15 log 2: the law's t0 still counts at half of the time"
    return gain.named("output at T − output at T/2").equals(math.log(2), within=0.15 * math.log(2), because=because)


@part.claim(
    "C5h",
    "With superclass labels the first phase ends (an output reaches 1/d) in the very step that the first update "
    "predicts, in every network.",
    source="Corollary D.1.1 with its constant, T0 = 4P/(dηs*²(|S_com| + |S_sub|/k)), times 1/(1 − ρ) for the falling "
    "bias; a rate at which it takes 20 steps, so that T0 is the first whole step after the predicted time",
)
def phase_time(m: Measurements[Params]) -> Judgement:
    late = m.final("t0", arm="first-phase") - m.final("predicted_t0", arm="first-phase")
    return pool([late], "T0, the next whole step, − predicted").between(0, 1)


@part.claims_over(
    {
        "C5k": {**EXACT, "kind": "common"},
        "C5l": {**EXACT, "kind": "subclass"},
    },
    statement="With superclass labels the biases of {kind} detectors fall by ρ, the bias rate, for each unit of their "
    "growth ({law}).",
    source="Lemma E.7: Δb/ΔA = −Θ(ρ) with ρ = log⁻⁵d, for detectors of the common feature; the others alike",
    when=_TIED,
)
def bias_falls(m: Measurements[Params], *, setting: str, kind: str) -> Judgement:
    fall = m.final(f"bias_fall_{kind}", **coarse(setting)) * (1 / m.params.bias_rate)
    because = "noise adds to a movement's length in second order, by about σ²dk/(s*N) of it"
    return fall.named("fall/growth, over ρ").equals(1, within=0.01, because=because)


@part.claims_over(
    {"C5m": EXACT, "C5r": RANDOM},
    statement="With superclass labels, neither superclass' common detectors ever lag behind the other's by more than "
    "a factor log d ({law}).",
    source="Lemma E.6: A_−/A_+ and A_+/A_− ≥ Ω(1/log d), with constant 1; every step looked at",
)
def balance(m: Measurements[Params], *, setting: str) -> Judgement:
    every = m.every("balance", **coarse(setting)).named("growth of the slower superclass/of the faster")
    return every.at_least(1 / math.log(m.params.dim))


def fitted_slopes(m: Measurements[Params], setting: str = "exact") -> list[Values]:
    """The slope of e^F over the later three quarters of training, for each superclass."""
    found = []
    last = m.params_of(setting).coarse_steps
    for y in SIGNS:
        curve = m.curve("own_output", superclass=y, **coarse(setting))
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
        slope / m.final("log_law_constant", superclass=y, counted=counted, **coarse(setting))
        for y, slope in zip(SIGNS, fitted_slopes(m, setting), strict=True)
    ]
    return ((parts[0] + parts[1]) * 0.5).named("fitted/predicted slope")


@part.claims_over(
    {
        "C8a": {**EXACT, "headline": True},
        "C8e": RANDOM,
        "C8c": {"setting": "jitter", "law": "exact patch counts, jittered strengths"},
    },
    statement="With superclass labels the output grows as log(Ct + t0), with C corrected to count the neurons that "
    "fire ({law}).",
    source="Lemma E.4, corrected: C = ηs*²/(2P)·(|S_com| + |S_sub|/k)(1 − ρ)",
    printed="C = ηs*/(2kP)",
)
def log_law(m: Measurements[Params], *, setting: str) -> Judgement:
    return slope_over_constant(m, "firing", setting).equals(1, within=0.1, because=_TENTH)


@part.claims_over(
    {"C8b": EXACT, "C8f": RANDOM},
    statement="The constant that the source prints for the logarithmic law, ηs*/(2kP), is too small by more than a "
    "factor 10 ({law}).",
    source="Lemma E.4 as printed",
)
def printed_constant(m: Measurements[Params], *, setting: str) -> Judgement:
    p = m.params
    printed = printed_log_law_constant(p.rate, p.subclasses, p.feature_patches, p.patches)
    slopes = fitted_slopes(m, setting)
    return ((slopes[0] + slopes[1]) * (0.5 / printed)).named("fitted/printed slope").above(10)


@part.claims_over(
    {"C8d": EXACT, "C8g": RANDOM},
    statement="After training on superclass labels an output is patches × firing neurons × one detector's response, "
    "over both features, within the share of neurons that noise can wake ({law}).",
    source="Lemma E.2, with the bias, neurons that fire and the numbers of patches that there are; easy samples",
)
def decomposed(m: Measurements[Params], *, setting: str) -> Judgement:
    parts = [
        m.final("decomposed_output", superclass=y, **coarse(setting))
        / m.final("own_output", superclass=y, **coarse(setting))
        for y in SIGNS
    ]
    because = "the share of neurons that noise can wake, Q(τ − slack)/Q(τ) − 1, which may answer less than a detector"
    ratio = ((parts[0] + parts[1]) * 0.5).named("made up of detectors/output")
    return ratio.equals(1, within=m.params_of(setting).waking_share(), because=because)


@part.phase(
    "P1",
    "A network trained on superclass labels gets more than half of the hard samples wrong.",
    source="Lemma E.8, over numbers of subclasses and of distractors",
)
def loses_hard_samples(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="coarse", setting="exact").above(0.5)


@part.boundary(
    "P1",
    says="It does where k exceeds k* = s*(1 − ρ)/(s†(ᾱ† − ρ)).",
    arms=("coarse",),
    point={"setting": "exact"},
)
def beyond_critical(params: Params) -> float:
    return math.log(params.subclasses / critical_subclasses(params.problem(), params.bias_rate))
