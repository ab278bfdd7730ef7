"""Claims about the first two steps: gradients (C2), angles (C3, C4), hidden codes, and shuffled labels (N1)."""

from __future__ import annotations

from itertools import pairwise

from assay.lab import Judgement, Measurements, combine

from ..claims import PARITY, STRUCTURED, THEORY
from .arms import Params, part

ON_PARITY = {"arm": "emergence", "setting": "parity", **STRUCTURED}


@part.claim(
    "C2a",
    "the first gradient's component on relevant patterns is β_iγ/σ̃",
    source="Step-one lemma",
    when=THEORY,
    setting="parity",
)
def emergence_signal(m: Measurements[Params]) -> Judgement:
    return m.at("signal_ratio", 1, **ON_PARITY).named("mean component / (βγ/σ̃)").between(0.95, 1.05)


@part.claim(
    "C2b",
    "neurons with a larger gate β_i get a larger component",
    source="Step-one lemma",
    when=THEORY,
    setting="parity",
)
def emergence_by_neuron(m: Measurements[Params]) -> Judgement:
    return m.at("component_correlation", 1, **ON_PARITY).named("correlation over neurons with β").at_least(0.99)


@part.claim(
    "C2c",
    "background components are sampling noise: no larger than √(β/n)σ_φ",
    source="Step-one lemma; the lemma's own error term is far below the sampling noise at these sizes",
    when=THEORY,
    setting="parity",
)
def emergence_background(m: Measurements[Params]) -> Judgement:
    return m.at("background_over_noise", 1, **ON_PARITY).named("background / sampling noise").between(0.5, 1.05)


@part.claim(
    "C3a",
    "the second step brings the neurons nearer to ±Σ_A M_j",
    source="Step-two lemma; at n = 2,000 of 400 patterns, where sampling noise is visible",
    when=THEORY,
    setting="tiny-samples",
)
def second_step_improves(m: Measurements[Params]) -> Judgement:
    where = {"arm": "emergence", "setting": "tiny-samples", **STRUCTURED}
    return (m.at("tangent", 2, **where) / m.at("tangent", 1, **where)).named("tan(step 2)/tan(step 1)").below(1)


@part.claim(
    "C3b",
    "after two steps every neuron is aligned (|cos| ≥ 0.99)",
    source="Step-two lemma, Table 1 (which prints the largest cosine, 0.997)",
    when=THEORY,
    setting="parity",
)
def second_step_aligns(m: Measurements[Params]) -> Judgement:
    return m.every("smallest_cosine", step=2, **ON_PARITY).named("neuron's |cos|").at_least(0.99)


@part.claim(
    "C3c",
    "the angle after step two is that of the empirical E[yx]: tan² = (D−k)p_o(1−p_o)/(nkγ²)",
    source="Derived from the step-two lemma as η⁽¹⁾ → 0",
    when=THEORY,
    setting="parity",
)
def second_step_angle(m: Measurements[Params]) -> Judgement:
    ratio = m.at("tangent", 2, **ON_PARITY) / m.at("expected_tangent", 2, **ON_PARITY)
    return ratio.named("tan measured / predicted").between(0.85, 1.15)


@part.claim(
    "C3d",
    "the angle after step one is the same times √κ",
    source="Derived from the step-one lemma",
    when=THEORY,
    setting="parity",
)
def first_step_angle(m: Measurements[Params]) -> Judgement:
    ratio = m.at("tangent", 1, **ON_PARITY) / m.at("expected_tangent", 1, **ON_PARITY)
    return ratio.named("tan measured / predicted").between(0.85, 1.15)


@part.claim(
    "C3h",
    "on labels of hidden codes two steps bring a neuron to E[yx] (|cos| ≥ 0.95)",
    source="Figure 15",
)
def codes_align(m: Measurements[Params]) -> Judgement:
    return m.at("largest_cosine", 2, arm="codes").at_least(0.95)


@part.claim("C3i", "there the neurons' mutual |cos| grows with each step", source="Figure 15")
def codes_cluster(m: Measurements[Params]) -> Judgement:
    cosines = [m.at("pairwise_cosine", step, arm="codes") for step in range(3)]
    rises = [later - sooner for sooner, later in pairwise(cosines)]
    return combine(min, rises, "smallest rise of mean |cos| in a step").above(0)


@part.claim(
    "C4h",
    "the alignment after one step does not depend on the input dimension",
    source="Table 3",
    printed="after one step it falls from 0.967 to 0.560 between d = 100 and d = 2,000",
    when=THEORY,
    setting="parity",
)
def alignment_without_dimension(m: Measurements[Params]) -> Judgement:
    low = m.at("largest_cosine", 1, arm="emergence", setting="low-dimension", **STRUCTURED)
    high = m.at("largest_cosine", 1, arm="emergence", setting="high-dimension", **STRUCTURED)
    return (high - low).named("step-one cosine, high minus low dimension").between(-0.02, 0.02)


@part.claims_over(
    {"C4o": {"setting": "low-dimension"}, "C4p": {"setting": "high-dimension"}},
    statement="neurons are aligned after two steps in the setting {setting} (median |cos| ≥ 0.99)",
    source="Table 3",
    when=THEORY,
)
def aligned_at_dimension(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.at("median_cosine", 2, arm="emergence", setting=setting, **STRUCTURED).at_least(0.99)


@part.claim(
    "C5f",
    "no random feature points at the relevant patterns (largest cos ≤ 0.2)",
    source="Table 1",
    when=PARITY,
    setting="parity",
    paper=0.114,
)
def random_features_direction(m: Measurements[Params]) -> Judgement:
    return m.at("largest_cosine", 0, **ON_PARITY).at_most(0.2)


@part.claim("N1", "with shuffled labels no neuron finds the relevant patterns", source="control")
def shuffled_direction(m: Measurements[Params]) -> Judgement:
    return m.at("median_cosine", 2, arm="emergence", setting="parity", inputs="shuffled").at_most(0.5)
