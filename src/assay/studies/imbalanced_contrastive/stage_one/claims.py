"""The claims on stage one (C1): how features grow from small weights, and why; with a control."""

from __future__ import annotations

import math

import numpy as np

from assay.lab import Judgement, Measurements, Values, farthest

from ..claims import EXACT, SOURCE_MODEL
from .arms import Params, part


@part.claim(
    "C1c",
    "From small weights without bias, frequent features grow by the predicted factor 1 − ηλ + (η/τ)(1 − 1/|𝔅|)κ per "
    "step, within 0.5 %.",
    source="Stage 1",
)
def frequent_growth(m: Measurements[Params]) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="frequent")
    return rows.named("measured/predicted growth of frequent features").between(0.995, 1.005)


@part.claim(
    "C1d",
    "From small weights without bias, rare features grow by the factor that their frequency predicts, within 0.5 % at "
    "every frequency (ε).",
    source="Stage 1: 1 − ηλ + (η/τ)(1 − 1/|𝔅|)κ per step",
    headline=True,
)
def rare_growth(m: Measurements[Params]) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="rare")
    return rows.named("measured/predicted growth of rare features").between(0.995, 1.005)


@part.claim(
    "C1e",
    "The growth per step of rare features from small weights rises linearly in their frequency (ε), with the "
    "predicted slope.",
    source="Stage 1; λ = 0.01",
)
def linear_in_epsilon(m: Measurements[Params]) -> Judgement:
    def slope(metric: str) -> Values:
        rows = m.rows(metric, arm="stage-one", views="paired", part="rare", decay=0.01)
        return m.per_seed(rows, lambda r: np.polyfit(r["epsilon"], r["value"], 1)[0], metric, by="epsilon")

    ratio = slope("growth") / slope("predicted_growth")
    return ratio.named("measured/predicted slope over ε").equals(1, within=0.05, because="5 %, our choice")


@part.claim(
    "C1f",
    "What lies outside the features only shrinks by weight decay in stage one, by 1 − ηλ per step, within 0.1 %.",
    source="Stage 1; ηλ = 0.015",
)
def noise_decays(m: Measurements[Params]) -> Judgement:
    rows = m.every("growth_over_predicted", arm="stage-one", views="paired", part="noise", decay=0.3)
    return rows.named("measured growth of noise/(1 − ηλ)").between(0.999, 1.001)


@part.claim(
    "C1g",
    "A rare feature grows from small weights where its pull (1/τ)(1 − 1/|𝔅|)κ exceeds the weight decay (λ), and "
    "shrinks where it does not.",
    source="Corollary of stage 1, at λ = 0.3, where ε = 0.1 falls below and the others above",
    when=SOURCE_MODEL,
)
def learnability(m: Measurements[Params]) -> Judgement:
    where = dict(arm="stage-one", views="paired", part="rare", decay=0.3)
    measured, predicted = (m.every(metric, **where) - 1.0 for metric in ("growth", "predicted_growth"))
    # Both grow or both shrink exactly where the quotient is positive.
    return (measured / predicted).named("(measured growth − 1)/(predicted growth − 1)").at_least(0)


@part.claim(
    "C1h",
    "The median neuron's features come to hold half of its squared norm at the step (T₁) that the growth factors "
    "predict.",
    source="Definition of T₁, at ε = 0.3 and λ = 0.01; growth factors instead of the printed order",
    printed="T₁ = Θ(d₁ log d/(η log log d)): an order that linearises (1 + x)^t outside its range",
)
def stage_one_end(m: Measurements[Params]) -> Judgement:
    where = dict(arm="stage-one", views="paired", decay=0.01, epsilon=0.3)
    ratio = m.final("stage_one_end", **where) / m.final("stage_one_predicted", **where)
    because = "one step, as T₁ is about twenty"
    return ratio.named("T₁ measured/predicted, median neuron").equals(1, within=0.05, because=because)


@part.claim(
    "N1",
    "When the two views of a sample share no features, no feature grows from small weights: frequent and rare ones "
    "shrink by 1 % or more per step (λ = 0.3).",
    source="control; weight decay alone shrinks by 1.5 %",
)
def unpaired(m: Measurements[Params]) -> Judgement:
    rows = m.every("growth", arm="stage-one", views="unpaired", part=["frequent", "rare"], decay=0.3)
    return rows.named("growth of features per step").at_most(0.99)


@part.claim(
    "C1b",
    "Averaged over features, a positive pair pulls a neuron along a feature by its projection α times κ.",
    source="Lemma F.3, with κ_j = q_j μ² (E|A_j|)²; single features are C1n",
)
def positive_pairs(m: Measurements[Params]) -> Judgement:
    return _as_expected(m, _worst_mode(m, "moment_over_kappa", 1, "moment/(α κ)"))


@part.claim(
    "C1n",
    "A positive pair pulls a neuron along every single feature by its projection α times κ, to sampling error.",
    source="Lemma F.3; with n draws the slopes' variance is below 2/(qn); 3 standard errors of the rarest feature",
)
def positive_pairs_each(m: Measurements[Params]) -> Judgement:
    worst = _worst_mode(m, "largest_moment_deviation", 0, "largest |moment/(α κ) − 1|")
    return worst.at_most(3 * math.sqrt(2 / (0.3 * 0.3 * m.params.samples)))


@part.claim(
    "C1j",
    "A positive pair pulls a neuron along no direction outside the features, to sampling error.",
    source="Lemma F.3, along M⊥; with n draws the slopes' standard error is about 0.1/√n, the criterion 5 of them",
)
def noise_moment(m: Measurements[Params]) -> Judgement:
    worst = _worst_mode(m, "largest_noise_over_kappa", 0, "largest |noise moment|/(α κ_max)")
    return worst.at_most(0.5 / math.sqrt(m.params.samples))


@part.claim(
    "C1k",
    "A negative pair pulls a neuron along no feature on average, to sampling error.",
    source="Lemma F.3, negatives; with n draws the slopes' standard error is about 1.3/√n, the criterion 3 of them",
)
def negative_moment(m: Measurements[Params]) -> Judgement:
    worst = _worst_mode(m, "largest_negative_over_kappa", 0, "largest |negative moment|/(α κ_max)")
    return worst.at_most(4 / math.sqrt(m.params.samples))


@part.claim(
    "C1l",
    "Without bias the mean similarity of a positive pair is the sum of α² κ over neurons and features.",
    source="Logit response",
)
def mean_similarity(m: Measurements[Params]) -> Judgement:
    return _as_expected(m, _worst_mode(m, "similarity_over_expected", 1, "similarity/expected"))


def _as_expected(m: Measurements[Params], ratio: Values) -> Judgement:
    draws = m.params.samples
    because = f"about 4 standard errors of {draws} draws"
    return ratio.equals(1, within=4.5 / math.sqrt(draws), because=because)


def _worst_mode(m: Measurements[Params], metric: str, level: float, what: str) -> Values:
    modes = [m.final(metric, arm="pair-moments", token_mode=mode) for mode in ("all", "bernoulli", "single")]
    return farthest(level, modes, f"{what}, worst token mode")


@part.claim(
    "C1i",
    "Near initialisation the softmax weights of InfoNCE differ from 1/|𝔅| by a term quadratic in the weights: half "
    "the weights, a quarter of it.",
    source="Logits near initialisation",
    printed="the bound stands on the product of the two deviations, of ℓ'_p and ℓ'_s; it holds for each of them",
)
def quadratic_logits(m: Measurements[Params]) -> Judgement:
    whole, half = (m.final("softmax_deviation", arm="logits", init=init) for init in (0.01, 0.005))
    because = "2.5 %, our choice, for terms of higher order"
    return (whole / half).named("deviation at σ₀/deviation at σ₀/2").equals(4, within=0.1, because=because)


@part.claim(
    "C1m",
    "With zero weights the InfoNCE loss is log |𝔅|, the logarithm of the number of candidates.",
    source="Exact, from the loss",
)
def zero_loss(m: Measurements[Params]) -> Judgement:
    return m.every("zero_loss_deviation", arm="logits").named("|loss − log |𝔅||").at_most(0, tolerance=EXACT)
