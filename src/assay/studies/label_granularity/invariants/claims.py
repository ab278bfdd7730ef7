"""Claims about the invariants of the proofs (C7), and the control that the falling bias is what upholds one (N2)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import Params, part

_RUNS = "unpruned runs with all patches, both label spaces"


def _never(m: Measurements[Params], metric: str, tolerance: float = 0.0) -> Judgement:
    every = m.every(metric, arm="invariants", bias="tied").named(metric.replace("_", " "))
    return every.at_most(0, tolerance=tolerance)


@part.claim(
    "C7a",
    "No neuron ever fires on a patch of plain noise, with superclass or with subclass labels.",
    source=f"Lemma F.3; {_RUNS}",
)
def silent_on_noise(m: Measurements[Params]) -> Judgement:
    return _never(m, "noise_fires")


@part.claim(
    "C7b",
    "No neuron ever fires on a feature that its initial weights missed by more than four deviations of the noise.",
    source=f"Lemma F.2; {_RUNS}",
)
def silent_unless_aligned(m: Measurements[Params]) -> Judgement:
    return _never(m, "unaligned_fires")


@part.claim(
    "C7c",
    "No neuron's response to a feature of another class than its own ever rises during training.",
    source=f"Theorems F.1 and G.1; {_RUNS}",
)
def foreign_features(m: Measurements[Params]) -> Judgement:
    return _never(m, "foreign_rise", tolerance=1e-6)


@part.claim(
    "C7d",
    "Leaving out the neurons that cannot fire at the start changes no output during training.",
    source=f"Derived from Lemma F.2; {_RUNS}",
)
def pruning_is_exact(m: Measurements[Params]) -> Judgement:
    return _never(m, "pruned_deviation", tolerance=1e-4)


@part.claim(
    "C7e",
    "No neuron ever fires on a feature that its initial weights missed by up to four deviations of the noise.",
    source=f"Lemma F.2 by its own threshold, whose gap of log⁻⁵d asks for far less noise; {_RUNS}",
)
def silent_near_threshold(m: Measurements[Params]) -> Judgement:
    return _never(m, "near_threshold_fires")


@part.claim(
    "N2",
    "Without biases that fall with the movement of their neurons, some neurons do fire on plain noise.",
    source="control for C7a",
)
def noise_without_bias(m: Measurements[Params]) -> Judgement:
    parts = [m.final("noise_fires", arm="invariants", bias="free", labels=who) for who in ("coarse", "fine")]
    return (parts[0] + parts[1]).named("noise patches × neurons that fire").above(0)
