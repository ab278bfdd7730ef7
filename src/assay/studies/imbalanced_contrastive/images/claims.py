"""The claims on long-tailed images (C8, Table 2), with a control of the pipeline."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part


@part.claim(
    "C8a",
    "pruning raises probe accuracy at the largest imbalance",
    source="Table 2 (+7.1 points at ρ = 100)",
    paper=0.0707,
)
def accuracy_gain(m: Measurements[Params]) -> Judgement:
    return _gain(m, m.params.image_ratios[-1]).named("accuracy, pruned − plain").above(0)


@part.claim(
    "C8b",
    "pruning lowers the gap between head and tail classes at the largest imbalance",
    source="Table 2 (5.69 to 5.62 points)",
    paper=-0.0007,
)
def gap_falls(m: Measurements[Params]) -> Judgement:
    return _gain(m, m.params.image_ratios[-1], metric="gap").named("Δ₂₀, pruned − plain").below(0)


@part.claim(
    "C8c",
    "the gain in accuracy grows with the imbalance",
    source="Table 2 and its discussion",
    printed="improvements become more substantial as ρ increases; the table's gains on CIFAR-10 are 5.7, 8.0 and 7.1 "
    "points at ρ = 10, 50 and 100",
    when={"two imbalance ratios or more": lambda p: len(p.image_ratios) > 1},
)
def gain_grows(m: Measurements[Params]) -> Judgement:
    ratios = m.params.image_ratios
    return (_gain(m, ratios[-1]) - _gain(m, ratios[0])).named(f"gain at ρ = {ratios[-1]:g} − at {ratios[0]:g}").above(0)


@part.claim(
    "C8d",
    "the predecessor's self-competitor raises probe accuracy at the largest imbalance",
    source="Extension: the method that the source follows",
)
def self_competitor_gain(m: Measurements[Params]) -> Judgement:
    return _gain(m, m.params.image_ratios[-1], "self-competitor").named("accuracy, self-competitor − plain").above(0)


@part.claim(
    "N6",
    "pretraining helps at all: the probe is better than on the untrained encoder",
    source="control of the image pipeline",
)
def pretraining_helps(m: Measurements[Params]) -> Judgement:
    rho = m.params.image_ratios[0]
    gain = _images(m, "accuracy", "none", rho) - _images(m, "untrained_accuracy", "none", rho)
    return gain.named("accuracy, pretrained − untrained").above(0)


def _gain(m: Measurements[Params], imbalance: float, pruning: str = "logit-masked", metric: str = "accuracy") -> Values:
    return _images(m, metric, pruning, imbalance) - _images(m, metric, "none", imbalance)


def _images(m: Measurements[Params], metric: str, pruning: str, imbalance: float) -> Values:
    return m.final(metric, arm="images", pruning=pruning, imbalance=imbalance)
