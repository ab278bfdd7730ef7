"""The claims on one training: its purest neuron (C3, Figure 1), all of its neurons (C7, Figure 6), other biases."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..claims import SOURCE_MODEL
from ..params import Dynamics
from .arms import part


@part.claim(
    "C3a",
    "After contrastive training on frequent and rare features, the neuron that one feature dominates most projects on "
    "it at least 5 times as much as on the median other feature.",
    source="Figure 1",
)
def dominant_over_others(m: Measurements[Dynamics]) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    ratio = m.final("dominant", **where) / m.final("other", **where)
    return ratio.named("dominant/median other projection").at_least(5)


@part.claim(
    "C3b",
    "After contrastive training on frequent and rare features, the neuron that one feature dominates most projects on "
    "it at least 5 times as much as on a noise direction.",
    source="Figure 1",
)
def dominant_over_noise(m: Measurements[Dynamics]) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    ratio = m.final("dominant", **where) / m.final("noise_direction", **where)
    return ratio.named("dominant/RMS noise projection").at_least(5)


@part.claim(
    "C3l",
    "The neuron that one feature dominates most after contrastive training starts with features near d/d₁ of its "
    "energy, the share of a random neuron, within a factor 2.",
    source="Figure 1, stage 1",
)
def share_starts(m: Measurements[Dynamics]) -> Judgement:
    level = (m.params.majority + m.params.minority) / m.params.dynamics_dim
    start = m.at("feature_share", 0, arm="dynamics", attention="softmax") * (1 / level)
    return start.named("initial share of features/(d/d₁)").between(0.5, 2)


@part.claim(
    "C3c",
    "After contrastive training on frequent and rare features, features hold more than half of the energy of the "
    "neuron that one feature dominates most.",
    source="Figure 1; its start is C3l",
)
def share_crosses(m: Measurements[Dynamics]) -> Judgement:
    return m.final("feature_share", arm="dynamics", attention="softmax").named("final share of features").at_least(0.5)


@part.claim(
    "C3d",
    "Contrastive training on frequent and rare features leaves the norm outside the features of the neuron that one "
    "feature comes to dominate most within 20 % of where it began.",
    source="Figure 1",
)
def noise_stays(m: Measurements[Dynamics]) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    ratio = m.final("noise_norm", **where) / m.at("noise_norm", 0, **where)
    return ratio.named("noise norm, end/start").equals(1, within=0.2, because="20 %, the specification's")


@part.claim(
    "C3e",
    "In contrastive training the neuron that one feature comes to dominate most is dominated more at the end than when "
    "biases were switched on (its projection over the median other).",
    source="Figure 1, stage 2",
)
def purer(m: Measurements[Dynamics]) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    begun = m.at("dominant", m.params.bias_on, **where) / m.at("other", m.params.bias_on, **where)
    ended = m.final("dominant", **where) / m.final("other", **where)
    return (ended / begun).named("dominant/other at the end over that at the start of stage 2").above(1)


@part.claim(
    "C3f",
    "After contrastive training on frequent and rare features, noise directions are negligible in the median neuron: "
    "their RMS is at most half of ‖w‖/√d₁.",
    source="Stage 3: o(1/√d₁)‖w‖",
)
def negligible_noise(m: Measurements[Dynamics]) -> Judgement:
    scaled = m.final("noise_rms", arm="dynamics", attention="softmax") * float(m.params.dynamics_dim**0.5)
    return scaled.named("RMS |β|√d₁/‖w‖, median neuron").at_most(0.5)


@part.claim(
    "C7j",
    "After contrastive training on frequent and rare features some neurons are lucky: they have one feature each.",
    source="Figure 6 (lists 7 of 24)",
    paper=7,
)
def some_lucky(m: Measurements[Dynamics]) -> Judgement:
    return m.final("lucky", arm="dynamics", attention="softmax").named("lucky neurons").at_least(1)


@part.claim(
    "C7k",
    "After contrastive training on frequent and rare features some neurons are mixed: they have two features or more.",
    source="Figure 6 (lists 4 of 24)",
    paper=4,
)
def some_mixed(m: Measurements[Dynamics]) -> Judgement:
    return m.final("mixed", arm="dynamics", attention="softmax").named("mixed neurons").at_least(1)


@part.claim(
    "C7l",
    "After contrastive training, frequent features have more neurons of their own (lucky ones) each than rare features "
    "have.",
    source="Figure 6: all lucky are frequent",
)
def lucky_are_frequent(m: Measurements[Dynamics]) -> Judgement:
    where = dict(arm="dynamics", attention="softmax")
    more = m.final("lucky_per_frequent", **where) - m.final("lucky_per_rare", **where)
    return more.named("lucky per frequent − per rare feature").above(0)


@part.claim(
    "C7m",
    "After contrastive training on frequent and rare features, features hold more than half of the median neuron's "
    "energy.",
    source="Figure 6; in a random neuron they hold d/d₁",
)
def mostly_features(m: Measurements[Dynamics]) -> Judgement:
    return m.final("median_feature_share", arm="dynamics", attention="softmax").named("share of features").at_least(0.5)


@part.claim(
    "C2f",
    "With nine features the proofs' own bias, √(2 log d/d)‖w‖, silences a third of the neurons or more.",
    source="Bias schedule of the proofs at the size of Figure 6",
    printed="b = √(2 log d/d)‖w‖ at T₁, growing by η/d per step",
    when=SOURCE_MODEL,
)
def printed_bias(m: Measurements[Dynamics]) -> Judgement:
    return m.final("silent", arm="other-biases", bias_rule="printed").named("share of silent neurons").at_least(1 / 3)
