"""The claims on the stages after the first: specialisation (C2) and what neurons are at the end (C3)."""

from __future__ import annotations

import math

import numpy as np

from assay.lab import Judgement, Measurements, combine, farthest_from

from .common_claims import EXACT, SOURCE_MODEL
from .study import study

# Stage two


@study.claim("C2a", "neurons with one dominant feature at the start keep it", source="Stage 2: 𝓜*_j at d = 9, γ = 0.1")
def lucky_keep(m: Measurements) -> Judgement:
    return m.final("lucky_kept", arm="lucky", rule="biased").named("share of lucky neurons that keep it").at_least(0.95)


@study.claim(
    "C2b",
    "once biases are on, lucky neurons specialise: their feature's share of their energy rises",
    source="Stage 2",
)
def lucky_specialise(m: Measurements) -> Judgement:
    where = dict(arm="lucky", rule="biased")
    rise = m.final("lucky_share", **where) - m.at("lucky_share", m.params.bias_on, **where)
    return rise.named("rise of the dominant feature's share").at_least(0.1)


@study.claim("C2c", "the norm of lucky neurons becomes mostly their one feature", source="Stage 2")
def mostly_one(m: Measurements) -> Judgement:
    return m.final("lucky_norm_share", arm="lucky", rule="biased").named("its share of ‖w‖²").at_least(0.5)


@study.claim(
    "C2d",
    "no other neuron's projection on a feature exceeds its lucky neurons' by a factor 2",
    source="Stage 2; over the features that have a lucky neuron",
)
def bounded_by_lucky(m: Measurements) -> Judgement:
    rows = m.every("ordinary_over_lucky", arm="lucky", rule="biased")
    return rows.named("largest other/largest lucky projection").at_most(2)


@study.claim(
    "C2e", "at T₂ lucky neurons have |α|² ≥ 2(ε_j/ε_max)‖w(T₁)‖²", source="Stage 2, lucky neurons, ε_j = ε_max"
)
def stage_two_growth(m: Measurements) -> Judgement:
    return m.final("stage_two_growth", arm="lucky", rule="biased").named("smallest |α|²/‖w(T₁)‖² at T₂").at_least(2)


@study.claim(
    "C2f",
    "at d = 9 the proofs' bias √(2 log d/d)‖w‖ silences a third of the neurons or more",
    source="Bias schedule of the proofs at the size of Figure 6",
    printed="b = √(2 log d/d)‖w‖ at T₁, growing by η/d per step",
    when=SOURCE_MODEL,
)
def printed_bias(m: Measurements) -> Judgement:
    return m.final("silent", arm="other-biases", bias_rule="printed").named("share of silent neurons").at_least(1 / 3)


@study.claim("C2g", "T₂ is reached within the sweep's steps: some ‖w‖² has grown d-fold since T₁", source="Stage 2")
def stage_two_ends(m: Measurements) -> Judgement:
    return m.final("stage_two_reached", arm="lucky", rule="biased").named("share of seeds that reach T₂").at_least(1)


@study.claim("C2h", "at T₂ lucky neurons have |α| ≥ √(1 + γ) b", source="Stage 2; γ = 0.1, 0.2‖w‖ as bias at T₁")
def lucky_above_bias(m: Measurements) -> Judgement:
    least = m.final("lucky_over_bias", arm="lucky", rule="biased")
    return least.named("smallest |α|/b of lucky neurons at T₂").at_least(math.sqrt(1.1))


@study.claim("C2i", "at T₂ neurons outside 𝓜_j have |α_ij| ≤ √(1 − γ) b", source="Stage 2; γ = 0.1, bias as in C2h")
def outsiders_below_bias(m: Measurements) -> Judgement:
    most = m.final("outsider_over_bias", arm="lucky", rule="biased")
    return most.named("largest |α_ij|/b outside 𝓜_j at T₂").at_most(math.sqrt(0.9))


for _letter, _metric, _what, _bounds in (
    ("k", "lucky_over_bias", "lucky neurons have |α| ≥ √(1 + γ) b", (math.sqrt(1.1), math.inf)),
    ("l", "outsider_over_bias", "neurons outside 𝓜_j have |α_ij| ≤ √(1 − γ) b", (-math.inf, math.sqrt(0.9))),
):

    @study.claim(
        f"C2{_letter}", f"with the proofs' bias at T₂ {_what}", source="Stage 2; γ = 0.1, b = √(2 log d/d)‖w‖ at T₁"
    )
    def printed_bounds(m: Measurements, metric: str = _metric, bounds: tuple[float, float] = _bounds) -> Judgement:
        worst = m.final(metric, arm="lucky", rule="printed")
        return worst.named(f"worst {metric.replace('_', ' ')} at T₂").between(*bounds)


# Stage three


@study.claim("C3a", "the purest neuron is one feature: 5 times the median of the others", source="Figure 1")
def dominant_over_others(m: Measurements) -> Judgement:
    ratio = m.final("dominant", arm="dynamics", attention="softmax") / m.final(
        "other", arm="dynamics", attention="softmax"
    )
    return ratio.named("dominant/median other projection").at_least(5)


@study.claim("C3b", "the purest neuron's feature is 5 times its projection on a noise direction", source="Figure 1")
def dominant_over_noise(m: Measurements) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    ratio = m.final("dominant", **where) / m.final("noise_direction", **where)
    return ratio.named("dominant/RMS noise projection").at_least(5)


@study.claim(
    "C3c", "the purest neuron's share of feature energy ends above one half", source="Figure 1; its start is C3l"
)
def share_crosses(m: Measurements) -> Judgement:
    return m.final("feature_share", arm="dynamics", attention="softmax").named("final share of features").at_least(0.5)


@study.claim("C3d", "the purest neuron's noise norm ends within 20 % of where it began", source="Figure 1")
def noise_stays(m: Measurements) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    ratio = m.final("noise_norm", **where) / m.at("noise_norm", 0, **where)
    return ratio.named("noise norm, end/start").between(0.8, 1.2)


@study.claim(
    "C3e", "the purest neuron is purer at the end than when biases were switched on", source="Figure 1, stage 2"
)
def purer(m: Measurements) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    begun, ended = (
        ask("dominant") / ask("other")
        for ask in (lambda k: m.at(k, m.params.bias_on, **where), lambda k: m.final(k, **where))
    )
    return (ended / begun).named("dominant/other at the end over that at the start of stage 2").above(1)


@study.claim("C3f", "noise directions are negligible: RMS |β| is below ‖w‖/√d₁ by half", source="Stage 3: o(1/√d₁)‖w‖")
def negligible_noise(m: Measurements) -> Judgement:
    scaled = m.final("noise_rms", arm="dynamics", attention="softmax") * float(m.params.dynamics_dim**0.5)
    return scaled.named("RMS |β|√d₁/‖w‖, median neuron").at_most(0.5)


@study.claim("C3g", "after the sweep's steps rare coefficients scale like ε/ε_max, within a factor 2", source="Stage 3")
def scale_with_frequency(m: Measurements) -> Judgement:
    nsr = m.params.noise[len(m.params.noise) // 2]
    ratios = [m.final("energy_ratio", arm="alignment", epsilon=e, nsr=nsr) * (1 / e) for e in m.params.rare]
    logs = [ratio.map(lambda value: float(np.log2(value))) for ratio in ratios]
    return combine(farthest_from(0), logs, "log2 of (rare/frequent)/ε, worst ε").between(-1, 1)


@study.claim(
    "C3h",
    "the scaling is a matter of time: at ε = 0.5 rare features catch up when training goes on",
    source="Stage 3 beyond its finite time",
    printed="at convergence strong coefficients are ε_j/ε_max of the largest",
    when={"ε = 0.5 among the frequencies": lambda p: 0.5 in p.rare},
)
def catches_up(m: Measurements) -> Judgement:
    return m.final("energy_ratio", arm="longer", epsilon=0.5).named("rare/frequent coefficient").at_least(0.9)


@study.claim(
    "C3i",
    "with perfect neurons the loss stops at E log(1 + N), N the negatives that contain the anchor's features",
    source="Derived: finite-sample floor; 127 negatives",
    printed="the running average of the loss tends to 0",
)
def floor(m: Measurements) -> Judgement:
    ratio = m.final("floor_loss", arm="loss-floor") / m.final("floor_formula", arm="loss-floor")
    return ratio.named("loss/floor").between(0.98, 1.02)


@study.claim("C3j", "at w⁽ᵗ⁾ the gradient of the pseudo-loss is τ times the loss's", source="Optimal learner")
def pseudo_gradient(m: Measurements) -> Judgement:
    return m.every("pseudo_slope", arm="pseudo-loss").named("|∇L̃/τ − ∇L|/|∇L|").at_most(0, tolerance=EXACT)


@study.claim(
    "C3k", "the pseudo-loss is convex and its regret stays below the bound of online descent", source="Optimal learner"
)
def regret(m: Measurements) -> Judgement:
    bend = m.every("pseudo_bend", arm="pseudo-loss").at_most(0, tolerance=EXACT)
    return (
        m.every("pseudo_regret", arm="pseudo-loss").named("regret/bound").at_most(1)
        if bend.verdict == "holds"
        else bend
    )


@study.claim(
    "C3l",
    "the purest neuron's share of feature energy starts near d/d₁, within a factor 2",
    source="Figure 1, stage 1",
)
def share_starts(m: Measurements) -> Judgement:
    level = (m.params.majority + m.params.minority) / m.params.dynamics_dim
    start = m.at("feature_share", 0, arm="dynamics", attention="softmax") * (1 / level)
    return start.named("initial share of features/(d/d₁)").between(0.5, 2)


@study.claim("C3m", "at w⁽ᵗ⁾ the value of the pseudo-loss is τ times the loss's", source="Optimal learner")
def pseudo_value(m: Measurements) -> Judgement:
    return m.every("pseudo_value", arm="pseudo-loss").named("|L̃/τ − L|").at_most(0, tolerance=EXACT)


@study.claim(
    "C3n",
    "weak coefficients are small: of neurons with a feature in 𝓝_i, the others' RMS is below ‖w‖/√d by half",
    source="Stage 3: o(ε_j/(ε_max√d))‖w‖, all features equally frequent; with 𝓝_i empty it is near 1 anyway",
)
def weak_coefficients(m: Measurements) -> Judgement:
    rms = m.final("weak_rms", arm="lucky", rule="biased")
    return rms.named("RMS |α'|√d/‖w‖, median neuron with 𝓝_i not empty").at_most(0.5)


@study.claim(
    "C3o",
    "trained long, the loss exceeds the floor of perfect neurons by 1/log d at most, at every ε",
    source="Stage 3: average loss O(1/log d), counted from the floor; last quarter of the steps",
)
def loss_excess(m: Measurements) -> Judgement:
    rows = m.rows("loss_excess", arm="longer")
    late = rows.filter(rows["step"] >= 0.75 * m.params.long_steps)
    parts = [
        m.per_seed(late.filter(late["epsilon"] == epsilon), lambda part: part["value"].mean(), "mean loss − floor")
        for epsilon in m.params.rare
    ]
    level = 1 / math.log(m.params.majority + m.params.minority)
    return combine(max, parts, "mean loss − floor, worst ε").at_most(level)
