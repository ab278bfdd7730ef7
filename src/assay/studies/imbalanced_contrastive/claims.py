"""The claims of the source on the three stages and on capacity (C1 to C4), the corrections, and the controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.lab import Judgement, Measurements, Values

from . import experiment_claims, pruning_claims  # noqa: F401 (the other claims register themselves)
from .study import study

EXACT = 1e-10
SOURCE_MODEL = {"five frequent and four rare features": lambda p: (p.majority, p.minority) == (5, 4)}


def combined(choose: Callable[[list[float]], Any], parts: list[Values], what: str) -> Values:
    """One value per seed, chosen among (or made of) the parts' values."""
    return Values({seed: float(choose([part.by_seed[seed] for part in parts])) for seed in parts[0].by_seed}, what)


# Stage one


@study.claim(
    "C1a",
    "the gradient is the closed form, to rounding, for both attentions and all token modes",
    source="Section 4, against automatic differentiation; the text leaves out 1/τ",
    printed="the gradient without the factor 1/τ (its pseudo-loss is −τ log)",
)
def closed_form(m: Measurements) -> Judgement:
    return m.every("autograd_deviation", arm="gradient").named("|formula − autograd|").at_most(0, tolerance=EXACT)


@study.claim("C1b", "a positive pair contributes α_ij κ_j along feature j, κ_j = q_j μ² (E|A_j|)²", source="Lemma F.3")
def positive_pairs(m: Measurements) -> Judgement:
    modes = [
        m.final("moment_over_kappa", arm="pair-moments", token_mode=mode) for mode in ("all", "bernoulli", "single")
    ]
    return combined(np.mean, modes, "moment/(α κ), mean over token modes").between(0.98, 1.02)


@study.claim("C1c", "frequent features grow geometrically by G = 1 − ηλ + (η/τ)(1 − 1/|𝔅|)κ per step", source="Stage 1")
def frequent_growth(m: Measurements) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="frequent")
    return rows.named("measured/predicted growth of frequent features").between(0.995, 1.005)


@study.claim("C1d", "rare features grow by the same law, at every ε", source="Stage 1")
def rare_growth(m: Measurements) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="rare")
    return rows.named("measured/predicted growth of rare features").between(0.995, 1.005)


@study.claim("C1e", "the growth rate rises linearly in ε, with the predicted slope", source="Stage 1")
def linear_in_epsilon(m: Measurements) -> Judgement:
    def slope(metric: str) -> Values:
        rows = m.rows(metric, arm="stage-one", views="paired", part="rare", decay=0.01).sort("epsilon")
        fits = {s: np.polyfit(r["epsilon"], r["value"], 1)[0] for (s,), r in rows.group_by("seed")}
        return Values(fits, metric)

    return (slope("growth") / slope("predicted_growth")).named("measured/predicted slope over ε").between(0.95, 1.05)


@study.claim("C1f", "what lies outside the features only decays, by 1 − ηλ per step", source="Stage 1; ηλ = 0.015")
def noise_decays(m: Measurements) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="noise", decay=0.3)
    return rows.named("measured growth of noise/(1 − ηλ)").between(0.999, 1.001)


@study.claim(
    "C1g",
    "a feature grows exactly if (1/τ)(1 − 1/|𝔅|)κ_j > λ",
    source="Corollary of stage 1, at λ = 0.3, where ε = 0.1 falls below and the others above",
    when=SOURCE_MODEL,
)
def learnability(m: Measurements) -> Judgement:
    signs = []
    for epsilon in (0.1, 0.3, 0.5, 0.75, 1.0):
        where = dict(arm="stage-one", views="paired", part="rare", decay=0.3, epsilon=epsilon)
        pair = [m.final(metric, **where) - 1.0 for metric in ("growth", "predicted_growth")]
        signs.append(combined(lambda v: float(v[0] * v[1] > 0), pair, "right"))
    return combined(min, signs, "share of features whose growth or decay is foretold").at_least(1)


@study.claim(
    "C1h",
    "features hold half of a neuron's energy at the predicted step T₁",
    source="Definition of T₁; growth factors instead of the printed order",
    printed="T₁ = Θ(d₁ log d/(η log log d)): an order that linearises (1 + x)^t outside its range",
)
def stage_one_end(m: Measurements) -> Judgement:
    where = dict(arm="stage-one", views="paired", decay=0.01, epsilon=0.3)
    ratio = m.final("stage_one_end", **where) / m.final("stage_one_predicted", **where)
    return ratio.named("T₁ measured/predicted, median neuron").between(0.95, 1.05)


@study.claim(
    "C1i",
    "near initialisation softmax weights differ from 1/|𝔅| by a term quadratic in the weights",
    source="Logits near initialisation; halving σ₀ divides the deviation by 4",
    printed="a bound on the product of deviation and |𝔅|, printed as one on the deviation",
)
def quadratic_logits(m: Measurements) -> Judgement:
    ratio = m.final("softmax_deviation", arm="logits", init=0.01) / m.final(
        "softmax_deviation", arm="logits", init=0.005
    )
    return ratio.named("deviation at σ₀/deviation at σ₀/2").between(3.9, 4.1)


# Stage two


@study.claim("C2a", "neurons with one dominant feature at the start keep it", source="Stage 2: 𝓜*_j at d = 9, γ = 0.1")
def lucky_keep(m: Measurements) -> Judgement:
    return m.final("lucky_kept", arm="lucky", rule="biased").named("share of lucky neurons that keep it").at_least(0.95)


@study.claim("C2b", "once biases are on, they specialise: that feature's share of their energy rises", source="Stage 2")
def lucky_specialise(m: Measurements) -> Judgement:
    where = dict(arm="lucky", rule="biased")
    rise = m.final("lucky_share", **where) - m.at("lucky_share", m.params.bias_on, **where)
    return rise.named("rise of the dominant feature's share").at_least(0.1)


@study.claim("C2c", "their norm becomes mostly that one feature", source="Stage 2")
def mostly_one(m: Measurements) -> Judgement:
    return m.final("lucky_norm_share", arm="lucky", rule="biased").named("its share of ‖w‖²").at_least(0.5)


@study.claim(
    "C2d", "no other neuron's projection on a feature exceeds its lucky neurons' by a factor 2", source="Stage 2"
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


# Stage three


@study.claim("C3a", "the purest neuron is one feature: 5 times the median of the others", source="Figure 1")
def dominant_over_others(m: Measurements) -> Judgement:
    ratio = m.final("dominant", arm="dynamics", attention="softmax") / m.final(
        "other", arm="dynamics", attention="softmax"
    )
    return ratio.named("dominant/median other projection").at_least(5)


@study.claim("C3b", "and 5 times a noise direction", source="Figure 1")
def dominant_over_noise(m: Measurements) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    ratio = m.final("dominant", **where) / m.final("noise_direction", **where)
    return ratio.named("dominant/RMS noise projection").at_least(5)


@study.claim("C3c", "its share of feature energy starts near d/d₁ and ends above one half", source="Figure 1, stage 1")
def share_crosses(m: Measurements) -> Judgement:
    return m.final("feature_share", arm="dynamics", attention="softmax").named("final share of features").at_least(0.5)


@study.claim("C3d", "its noise norm ends within 20 % of where it began", source="Figure 1")
def noise_stays(m: Measurements) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    ratio = m.final("noise_norm", **where) / m.at("noise_norm", 0, **where)
    return ratio.named("noise norm, end/start").between(0.8, 1.2)


@study.claim("C3e", "it is purer at the end than when biases were switched on", source="Figure 1, stage 2")
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
    return combined(lambda v: max(v, key=abs), logs, "log2 of (rare/frequent)/ε, worst ε").between(-1, 1)


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


# Capacity


@study.claim(
    "C4a", "𝓜_j holds a share Pr[Beta(1/2, (d−1)/2) ≥ c₂ log d/d] of random neurons", source="Neuron sets, exact"
)
def ordinary_share(m: Measurements) -> Judgement:
    sets = [dict(arm="neuron-sets", features=d, ratio=r) for d in (30, 100) for r in (1.0, 0.7)]
    ratios = [m.final("ordinary", **where) / m.final("exact_ordinary", **where) for where in sets]
    return combined(lambda v: max(v, key=lambda x: abs(x - 1)), ratios, "counted/exact, worst case").between(0.95, 1.05)


@study.claim(
    "C4b",
    "under imbalance (d = 100, r = 0.7) lucky neurons are rarer than the printed order by a factor 10 or more",
    source="Neuron sets, exact: the factor (1 − p₂)^{d−1} tends to 0",
    printed="|𝓜*_j| ≥ Ω(m d^{−(1+γ)/r²})",
)
def lucky_bound(m: Measurements) -> Judgement:
    where = dict(arm="neuron-sets", features=100, ratio=0.7)
    ratio = m.final("lucky", **where) / m.final("printed_lucky", **where)
    return ratio.named("counted share/printed order").at_most(0.1)


@study.claim("C4c", "the expected number of features per random neuron falls with r", source="|𝓝_i| = O(d^{1−r²(1−γ)})")
def features_fall(m: Measurements) -> Judgement:
    falls = [
        m.final("features_per_neuron", arm="neuron-sets", features=d, ratio=0.7)
        - m.final("features_per_neuron", arm="neuron-sets", features=d, ratio=1.0)
        for d in (30, 100)
    ]
    return combined(min, falls, "|𝓝_i| at r = 0.7 − at r = 1, smaller d or larger").above(0)


def _wide(m: Measurements, metric: str, epsilon: float, place: int = -1) -> Values:
    return m.final(metric, arm="widths", neurons=m.params.widths[place], epsilon=epsilon)


def _middle(m: Measurements) -> float:
    return float(m.params.rare[len(m.params.rare) // 2])


@study.claim(
    "C4d", "trained: rarer features get fewer neurons of their own", source="Capacity; widest network, mid ε against 1"
)
def fewer_lucky(m: Measurements) -> Judgement:
    change = _wide(m, "lucky_per_rare", m.params.rare[-1]) - _wide(m, "lucky_per_rare", _middle(m))
    return change.named(f"lucky per rare feature, ε = {m.params.rare[-1]:g} − ε = {_middle(m):g}").above(0)


@study.claim("C4e", "trained: neurons mix more features when some are rare", source="Capacity: |𝓝_i| grows as r falls")
def more_mixing(m: Measurements) -> Judgement:
    change = _wide(m, "features_per_neuron", _middle(m)) - _wide(m, "features_per_neuron", m.params.rare[-1])
    return change.named(f"features per neuron, ε = {_middle(m):g} − ε = {m.params.rare[-1]:g}").above(0)


@study.claim(
    "C4f", "trained: width raises the share of features that have a neuron of their own", source="Capacity, ε = 1"
)
def width_helps(m: Measurements) -> Judgement:
    return (_wide(m, "covered", 1.0) - _wide(m, "covered", 1.0, 0)).named("covered, widest − narrowest").above(0)


@study.claim("C4g", "trained: at equal width fewer rare features have one", source="Capacity: more width is needed")
def width_needed(m: Measurements) -> Judgement:
    return (
        (_wide(m, "covered", m.params.rare[-1]) - _wide(m, "covered", _middle(m)))
        .named("covered, ε = 1 − mid ε")
        .above(0)
    )


# Controls


@study.claim("N1", "when the two views share no features, nothing grows", source="control")
def unpaired(m: Measurements) -> Judgement:
    rows = m.every("growth", arm="stage-one", views="unpaired", part="frequent", decay=0.3)
    return rows.named("growth of frequent features per step").at_most(0.99)


@study.claim(
    "N2",
    "without biases the purest neurons are no purer: lucky ones gain no share",
    source="control; W → QW leaves the loss",
)
def no_bias(m: Measurements) -> Judgement:
    where = dict(arm="lucky", rule="unbiased")
    rise = m.final("lucky_share", **where) - m.at("lucky_share", m.params.bias_on, **where)
    return rise.named("rise of the dominant feature's share").at_most(0.02)
