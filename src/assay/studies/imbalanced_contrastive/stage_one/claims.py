"""The claims on stage one (C1): how features grow from small weights, and why; with a control."""

from __future__ import annotations

import math

import numpy as np

from assay.lab import Judgement, Measurements, Values, combine, farthest_from

from ..claims import EXACT, SOURCE_MODEL
from .arms import Params, part


@part.claim("C1c", "frequent features grow geometrically by G = 1 − ηλ + (η/τ)(1 − 1/|𝔅|)κ per step", source="Stage 1")
def frequent_growth(m: Measurements[Params]) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="frequent")
    return rows.named("measured/predicted growth of frequent features").between(0.995, 1.005)


@part.claim("C1d", "rare features grow by G = 1 − ηλ + (η/τ)(1 − 1/|𝔅|)κ per step, at every ε", source="Stage 1")
def rare_growth(m: Measurements[Params]) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="rare")
    return rows.named("measured/predicted growth of rare features").between(0.995, 1.005)


@part.claim("C1e", "the growth rate rises linearly in ε, with the predicted slope", source="Stage 1")
def linear_in_epsilon(m: Measurements[Params]) -> Judgement:
    def slope(metric: str) -> Values:
        rows = m.rows(metric, arm="stage-one", views="paired", part="rare", decay=0.01)
        return m.per_seed(rows, lambda r: np.polyfit(r["epsilon"], r["value"], 1)[0], metric, by="epsilon")

    return (slope("growth") / slope("predicted_growth")).named("measured/predicted slope over ε").between(0.95, 1.05)


@part.claim("C1f", "what lies outside the features only decays, by 1 − ηλ per step", source="Stage 1; ηλ = 0.015")
def noise_decays(m: Measurements[Params]) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="noise", decay=0.3)
    return rows.named("measured growth of noise/(1 − ηλ)").between(0.999, 1.001)


@part.claim(
    "C1g",
    "a feature grows exactly if (1/τ)(1 − 1/|𝔅|)κ_j > λ",
    source="Corollary of stage 1, at λ = 0.3, where ε = 0.1 falls below and the others above",
    when=SOURCE_MODEL,
)
def learnability(m: Measurements[Params]) -> Judgement:
    signs = []
    for epsilon in (0.1, 0.3, 0.5, 0.75, 1.0):
        where = dict(arm="stage-one", views="paired", part="rare", decay=0.3, epsilon=epsilon)
        pair = [m.final(metric, **where) - 1.0 for metric in ("growth", "predicted_growth")]
        signs.append(combine(lambda v: float(v[0] * v[1] > 0), pair, "right"))
    return combine(min, signs, "share of features whose growth or decay is foretold").at_least(1)


@part.claim(
    "C1h",
    "features hold half of a neuron's energy at the predicted step T₁",
    source="Definition of T₁; growth factors instead of the printed order",
    printed="T₁ = Θ(d₁ log d/(η log log d)): an order that linearises (1 + x)^t outside its range",
)
def stage_one_end(m: Measurements[Params]) -> Judgement:
    where = dict(arm="stage-one", views="paired", decay=0.01, epsilon=0.3)
    ratio = m.final("stage_one_end", **where) / m.final("stage_one_predicted", **where)
    return ratio.named("T₁ measured/predicted, median neuron").between(0.95, 1.05)


@part.claim("N1", "when the two views share no features, nothing grows", source="control")
def unpaired(m: Measurements[Params]) -> Judgement:
    rows = m.every("growth", arm="stage-one", views="unpaired", part="frequent", decay=0.3)
    return rows.named("growth of frequent features per step").at_most(0.99)


@part.claim(
    "C1b",
    "a positive pair contributes α_ij κ_j along feature j, κ_j = q_j μ² (E|A_j|)²: the mean over features",
    source="Lemma F.3; single features are C1n",
)
def positive_pairs(m: Measurements[Params]) -> Judgement:
    return _worst_mode(m, "moment_over_kappa", 1, "moment/(α κ)").between(0.98, 1.02)


@part.claim(
    "C1n",
    "a positive pair contributes α_ij κ_j along every single feature, to sampling error",
    source="Lemma F.3; with n draws the slopes' variance is below 2/(qn); 3 standard errors of the rarest feature",
)
def positive_pairs_each(m: Measurements[Params]) -> Judgement:
    worst = _worst_mode(m, "largest_moment_deviation", 0, "largest |moment/(α κ) − 1|")
    return worst.at_most(3 * math.sqrt(2 / (0.3 * 0.3 * m.params.samples)))


@part.claim(
    "C1j",
    "a positive pair contributes nothing along any noise direction, to sampling error",
    source="Lemma F.3, along M⊥; with n draws the slopes' standard error is about 0.1/√n, the criterion 5 of them",
)
def noise_moment(m: Measurements[Params]) -> Judgement:
    worst = _worst_mode(m, "largest_noise_over_kappa", 0, "largest |noise moment|/(α κ_max)")
    return worst.at_most(0.5 / math.sqrt(m.params.samples))


@part.claim(
    "C1k",
    "a negative pair contributes nothing along any feature, to sampling error",
    source="Lemma F.3, negatives; with n draws the slopes' standard error is about 1.3/√n, the criterion 3 of them",
)
def negative_moment(m: Measurements[Params]) -> Judgement:
    worst = _worst_mode(m, "largest_negative_over_kappa", 0, "largest |negative moment|/(α κ_max)")
    return worst.at_most(4 / math.sqrt(m.params.samples))


@part.claim("C1l", "the mean similarity of a positive pair is Σ_i Σ_j α_ij² κ_j at b = 0", source="Logit response")
def mean_similarity(m: Measurements[Params]) -> Judgement:
    return _worst_mode(m, "similarity_over_expected", 1, "similarity/expected").between(0.98, 1.02)


def _worst_mode(m: Measurements[Params], metric: str, level: float, what: str) -> Values:
    modes = [m.final(metric, arm="pair-moments", token_mode=mode) for mode in ("all", "bernoulli", "single")]
    return combine(farthest_from(level), modes, f"{what}, worst token mode")


@part.claim(
    "C1i",
    "near initialisation softmax weights differ from 1/|𝔅| by a term quadratic in the weights",
    source="Logits near initialisation; halving σ₀ divides the deviation by 4",
    printed="the bound stands on the product of the two deviations, of ℓ'_p and ℓ'_s; it holds for each of them",
)
def quadratic_logits(m: Measurements[Params]) -> Judgement:
    whole, half = (m.final("softmax_deviation", arm="logits", init=init) for init in (0.01, 0.005))
    return (whole / half).named("deviation at σ₀/deviation at σ₀/2").between(3.9, 4.1)


@part.claim("C1m", "with zero weights the loss is log |𝔅|", source="Exact, from the loss")
def zero_loss(m: Measurements[Params]) -> Judgement:
    return m.every("zero_loss_deviation", arm="logits").named("|loss − log |𝔅||").at_most(0, tolerance=EXACT)
