"""The claims on stage two (C2): what becomes of neurons that one feature dominates at the start; with a control."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part


@part.claim(
    "C2a",
    "At least 95 % of the neurons that a single feature dominates at the start still have it as their strongest after "
    "contrastive training.",
    source="Stage 2: the sets 𝓜*_j with γ = 0.1; all features equally frequent",
)
def lucky_keep(m: Measurements[Params]) -> Judgement:
    return m.final("lucky_kept", arm="lucky", rule="biased").named("share of lucky neurons that keep it").at_least(0.95)


@part.claim(
    "C2b",
    "Once biases are on, neurons that one feature dominates specialise: its share of their feature energy rises by "
    "0.1 or more.",
    source="Stage 2: the sets 𝓜*_j with γ = 0.1",
)
def lucky_specialise(m: Measurements[Params]) -> Judgement:
    return _rise(m, "biased").at_least(0.1)


@part.claim(
    "N2",
    "Without biases neurons that one feature dominates do not specialise: its share of their feature energy rises by "
    "0.02 at most.",
    source="control; W → QW leaves the loss",
)
def no_bias(m: Measurements[Params]) -> Judgement:
    return _rise(m, "unbiased").at_most(0.02)


def _rise(m: Measurements[Params], rule: str) -> Values:
    """What lucky neurons gain from the step at which biases are switched on to the end."""
    where = dict(arm="lucky", rule=rule)
    rise = m.final("lucky_share", **where) - m.at("lucky_share", m.params.bias_on, **where)
    return rise.named("rise of the dominant feature's share")


@part.claim(
    "C2c",
    "Trained with biases, neurons that one feature dominates at the start end with more than half of their squared "
    "norm in it.",
    source="Stage 2: the weight norm becomes mostly that one feature",
)
def mostly_one(m: Measurements[Params]) -> Judgement:
    return m.final("lucky_norm_share", arm="lucky", rule="biased").named("its share of ‖w‖²").at_least(0.5)


@part.claim(
    "C2d",
    "Trained with biases, no neuron projects on a feature more than twice as much as those that the feature dominated "
    "at the start.",
    source="Stage 2: O(·), a factor 2 by our choice; over the features that have a lucky neuron",
)
def bounded_by_lucky(m: Measurements[Params]) -> Judgement:
    rows = m.every("ordinary_over_lucky", arm="lucky", rule="biased")
    return rows.named("largest other/largest lucky projection").at_most(2)


@part.claim(
    "C2e",
    "At the end of stage two (T₂) a neuron's squared projection on the feature that dominated it is at least twice "
    "its squared norm at T₁.",
    source="Stage 2: |α(T₂)|² ≥ 2(ε_j/ε_max)‖w(T₁)‖², here with ε_j = ε_max",
)
def stage_two_growth(m: Measurements[Params]) -> Judgement:
    return m.final("stage_two_growth", arm="lucky", rule="biased").named("smallest |α|²/‖w(T₁)‖² at T₂").at_least(2)


@part.claim(
    "C2g",
    "With all features equally frequent, every contrastive training reaches the end of stage two: some neuron's "
    "squared norm grows d-fold after biases are switched on.",
    source="Stage 2, definition of T₂",
)
def stage_two_ends(m: Measurements[Params]) -> Judgement:
    rows = m.every("stage_two_reached", arm="lucky", rule="biased")
    return rows.named("seed reaches T₂ (1) or not (0)").at_least(1)


OUR_BIAS = {"a bias of 0.2‖w‖": lambda p: p.bias == 0.2}
OVER, UNDER = math.sqrt(1.1), math.sqrt(0.9)  # √(1 + γ) and √(1 − γ)


@part.claims_over(
    {
        "C2h": {"rule": "biased", "bias": "0.2‖w‖", "when": OUR_BIAS},
        "C2k": {"rule": "printed", "bias": "√(2 log d/d)‖w‖, the proofs'"},
    },
    statement="At the end of stage two (T₂) neurons that one feature dominated at the start project on it √(1 + γ) "
    "times their bias or more: b = {bias}.",
    source="Stage 2; γ = 0.1",
)
def lucky_above_bias(m: Measurements[Params], *, rule: str) -> Judgement:
    least = m.final("lucky_over_bias", arm="lucky", rule=rule)
    return least.named("smallest |α|/b of lucky neurons at T₂").at_least(OVER)


@part.claims_over(
    {
        "C2i": {"rule": "biased", "bias": "0.2‖w‖", "when": OUR_BIAS},
        "C2l": {"rule": "printed", "bias": "√(2 log d/d)‖w‖, the proofs'"},
    },
    statement="At the end of stage two (T₂) neurons with little of a feature at the start (outside 𝓜_j) project on it "
    "√(1 − γ)b at most: b = {bias}.",
    source="Stage 2; γ = 0.1",
)
def outsiders_below_bias(m: Measurements[Params], *, rule: str) -> Judgement:
    most = m.final("outsider_over_bias", arm="lucky", rule=rule)
    return most.named("largest |α_ij|/b outside 𝓜_j at T₂").at_most(UNDER)


@part.claim(
    "C3n",
    "In neurons with a strong feature the other features are weak: after training their RMS is at most half of ‖w‖/√d.",
    source="Stage 3: o(ε_j/(ε_max√d))‖w‖, all features equally frequent; with 𝓝_i empty it is near 1 anyway",
)
def weak_coefficients(m: Measurements[Params]) -> Judgement:
    rms = m.final("weak_rms", arm="lucky", rule="biased")
    return rms.named("RMS |α'|√d/‖w‖, median neuron with 𝓝_i not empty").at_most(0.5)
