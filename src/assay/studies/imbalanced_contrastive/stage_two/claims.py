"""The claims on stage two (C2): what becomes of neurons that one feature dominates at the start; with a control."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements

from ..params import Sweep
from .arms import part


@part.claim("C2a", "neurons with one dominant feature at the start keep it", source="Stage 2: 𝓜*_j at d = 9, γ = 0.1")
def lucky_keep(m: Measurements[Sweep]) -> Judgement:
    return m.final("lucky_kept", arm="lucky", rule="biased").named("share of lucky neurons that keep it").at_least(0.95)


@part.claim(
    "C2b",
    "once biases are on, lucky neurons specialise: their feature's share of their energy rises",
    source="Stage 2",
)
def lucky_specialise(m: Measurements[Sweep]) -> Judgement:
    where = dict(arm="lucky", rule="biased")
    rise = m.final("lucky_share", **where) - m.at("lucky_share", m.params.bias_on, **where)
    return rise.named("rise of the dominant feature's share").at_least(0.1)


@part.claim(
    "N2",
    "without biases the purest neurons are no purer: lucky ones gain no share",
    source="control; W → QW leaves the loss",
)
def no_bias(m: Measurements[Sweep]) -> Judgement:
    where = dict(arm="lucky", rule="unbiased")
    rise = m.final("lucky_share", **where) - m.at("lucky_share", m.params.bias_on, **where)
    return rise.named("rise of the dominant feature's share").at_most(0.02)


@part.claim("C2c", "the norm of lucky neurons becomes mostly their one feature", source="Stage 2")
def mostly_one(m: Measurements[Sweep]) -> Judgement:
    return m.final("lucky_norm_share", arm="lucky", rule="biased").named("its share of ‖w‖²").at_least(0.5)


@part.claim(
    "C2d",
    "no other neuron's projection on a feature exceeds its lucky neurons' by a factor 2",
    source="Stage 2; over the features that have a lucky neuron",
)
def bounded_by_lucky(m: Measurements[Sweep]) -> Judgement:
    rows = m.every("ordinary_over_lucky", arm="lucky", rule="biased")
    return rows.named("largest other/largest lucky projection").at_most(2)


@part.claim("C2e", "at T₂ lucky neurons have |α|² ≥ 2(ε_j/ε_max)‖w(T₁)‖²", source="Stage 2, lucky neurons, ε_j = ε_max")
def stage_two_growth(m: Measurements[Sweep]) -> Judgement:
    return m.final("stage_two_growth", arm="lucky", rule="biased").named("smallest |α|²/‖w(T₁)‖² at T₂").at_least(2)


@part.claim("C2g", "T₂ is reached within the sweep's steps: some ‖w‖² has grown d-fold since T₁", source="Stage 2")
def stage_two_ends(m: Measurements[Sweep]) -> Judgement:
    return m.final("stage_two_reached", arm="lucky", rule="biased").named("share of seeds that reach T₂").at_least(1)


@part.claim("C2h", "at T₂ lucky neurons have |α| ≥ √(1 + γ) b", source="Stage 2; γ = 0.1, 0.2‖w‖ as bias at T₁")
def lucky_above_bias(m: Measurements[Sweep]) -> Judgement:
    least = m.final("lucky_over_bias", arm="lucky", rule="biased")
    return least.named("smallest |α|/b of lucky neurons at T₂").at_least(math.sqrt(1.1))


@part.claim("C2i", "at T₂ neurons outside 𝓜_j have |α_ij| ≤ √(1 − γ) b", source="Stage 2; γ = 0.1, bias as in C2h")
def outsiders_below_bias(m: Measurements[Sweep]) -> Judgement:
    most = m.final("outsider_over_bias", arm="lucky", rule="biased")
    return most.named("largest |α_ij|/b outside 𝓜_j at T₂").at_most(math.sqrt(0.9))


@part.claim(
    "C2k",
    "with the proofs' bias at T₂ lucky neurons have |α| ≥ √(1 + γ) b",
    source="Stage 2; γ = 0.1, b = √(2 log d/d)‖w‖ at T₁",
)
def lucky_above_printed_bias(m: Measurements[Sweep]) -> Judgement:
    least = m.final("lucky_over_bias", arm="lucky", rule="printed")
    return least.named("worst lucky over bias at T₂").between(math.sqrt(1.1), math.inf)


@part.claim(
    "C2l",
    "with the proofs' bias at T₂ neurons outside 𝓜_j have |α_ij| ≤ √(1 − γ) b",
    source="Stage 2; γ = 0.1, b = √(2 log d/d)‖w‖ at T₁",
)
def outsiders_below_printed_bias(m: Measurements[Sweep]) -> Judgement:
    most = m.final("outsider_over_bias", arm="lucky", rule="printed")
    return most.named("worst outsider over bias at T₂").between(-math.inf, math.sqrt(0.9))


@part.claim(
    "C3n",
    "weak coefficients are small: of neurons with a feature in 𝓝_i, the others' RMS is below ‖w‖/√d by half",
    source="Stage 3: o(ε_j/(ε_max√d))‖w‖, all features equally frequent; with 𝓝_i empty it is near 1 anyway",
)
def weak_coefficients(m: Measurements[Sweep]) -> Judgement:
    rms = m.final("weak_rms", arm="lucky", rule="biased")
    return rms.named("RMS |α'|√d/‖w‖, median neuron with 𝓝_i not empty").at_most(0.5)
