"""Claims about the first two steps: gradients (C2, C6k), angles (C3, C4), hidden codes, and shuffled labels (N1)."""

from __future__ import annotations

import math
from itertools import pairwise

from assay.lab import Judgement, Measurements, combine

from ..claims import STRUCTURED, THEORY, also_in
from .arms import Params, part
from .theory import expected_tangent, shuffled_cosine_scale

_MARGIN = "twice the chance deviation of one seed's noise, 1/√(2(D − k)) for D = 100"
ANGLE = math.tan(math.radians(10))
ON_PARITY = {"arm": "emergence", "setting": "parity", **STRUCTURED}


@part.claim(
    "C2a",
    "On parity of structured inputs the first gradient already points at the patterns that make the label, as strongly "
    "as theory predicts (βγ/σ̃, within 5 %).",
    source="Step-one lemma",
    when=THEORY,
    setting="parity",
    headline=True,
)
def emergence_signal(m: Measurements[Params]) -> Judgement:
    ratio = m.at("signal_ratio", 1, **ON_PARITY).named("measured / predicted")
    return ratio.equals(1, within=0.05, because="twice the largest error of a component at the source's sizes")


@part.claim(
    "C2b",
    "On parity of structured inputs, neurons whose gate is open more often (β) get a proportionally larger first "
    "gradient along the relevant patterns (correlation at least 0.99).",
    source="Step-one lemma",
    when=THEORY,
    setting="parity",
)
def emergence_by_neuron(m: Measurements[Params]) -> Judgement:
    return m.at("component_correlation", 1, **ON_PARITY).named("correlation over neurons with β").at_least(0.99)


@part.claim(
    "C2c",
    "On parity of structured inputs the first gradient's components along background patterns are no larger than "
    "sampling noise makes them.",
    source="Step-one lemma; its error term is far below the sampling noise, of which √(β/n)σ_φ is an upper estimate",
    when=THEORY,
    setting="parity",
)
def emergence_background(m: Measurements[Params]) -> Judgement:
    return m.at("background_over_noise", 1, **ON_PARITY).named("background / sampling noise").at_most(1)


@part.claim(
    "C3a",
    "With few samples of many patterns (structured parity), the second step turns the neurons nearer to the sum of the "
    "relevant patterns.",
    source="Step-two lemma, in a setting where sampling noise is visible",
    when=THEORY,
    setting="tiny-samples",
)
def second_step_improves(m: Measurements[Params]) -> Judgement:
    where = {"arm": "emergence", "setting": "tiny-samples", **STRUCTURED}
    return (m.at("tangent", 2, **where) / m.at("tangent", 1, **where)).named("tan(step 2)/tan(step 1)").below(1)


@part.claim(
    "C3b",
    "After two steps on parity of structured inputs every neuron is aligned with the sum of the relevant patterns "
    "(|cos| at least 0.99).",
    source="Step-two lemma, Table 1 (which prints the largest cosine, 0.997)",
    when=THEORY,
    setting="parity",
)
def second_step_aligns(m: Measurements[Params]) -> Judgement:
    return m.every("smallest_cosine", step=2, **ON_PARITY).named("neuron's |cos|").at_least(0.99)


@part.claim(
    "C3c",
    "After two steps on structured parity the angle between neurons and relevant patterns is the one that sampling "
    "noise alone leaves (its tangent, within 15 %).",
    source="Derived from the step-two lemma as η⁽¹⁾ → 0: tan² = (D−k)p_o(1−p_o)/(nkγ²)",
    when=THEORY,
    setting="parity",
)
def second_step_angle(m: Measurements[Params]) -> Judgement:
    ratio = m.at("tangent", 2, **ON_PARITY) / m.at("expected_tangent", 2, **ON_PARITY)
    return ratio.named("tan measured / predicted").equals(1, within=0.15, because=_MARGIN)


@part.claim(
    "C3d",
    "After one step on structured parity the angle between neurons and relevant patterns is the predicted one, wider "
    "by √κ than the one predicted after two (its tangent, within 15 %).",
    source="Derived from the step-one lemma: κ = E[σ̃'²]/β², by how much the gates spread the sampling noise",
    when=THEORY,
    setting="parity",
)
def first_step_angle(m: Measurements[Params]) -> Judgement:
    ratio = m.at("tangent", 1, **ON_PARITY) / m.at("expected_tangent", 1, **ON_PARITY)
    return ratio.named("tan measured / predicted").equals(1, within=0.15, because=_MARGIN)


@part.claim(
    "C3h",
    "On labels of hidden codes, two steps turn a neuron to the mean of label times input (|cos| at least 0.95).",
    source="Figure 15",
)
def codes_align(m: Measurements[Params]) -> Judgement:
    return m.at("largest_cosine", 2, arm="codes").at_least(0.95)


@part.claim(
    "C3i",
    "On labels of hidden codes, the neurons come nearer to each other with each of the first two steps (mean |cos|).",
    source="Figure 15",
)
def codes_cluster(m: Measurements[Params]) -> Judgement:
    cosines = [m.at("pairwise_cosine", step, arm="codes") for step in range(3)]
    rises = [later - sooner for sooner, later in pairwise(cosines)]
    return combine(min, rises, "smallest rise of mean |cos| in a step").above(0)


@part.claim(
    "C4h",
    "After one step on structured parity the median neuron's cosine with the sum of the relevant patterns is the same "
    "with few and with many input dimensions, within 0.02.",
    source="Table 3, as exact erasure of the old weights demands",
    printed="after one step it falls from 0.967 to 0.560 between d = 100 and d = 2,000",
    when=THEORY,
    setting="low-dimension",
)
def alignment_without_dimension(m: Measurements[Params]) -> Judgement:
    also_in(m, "high-dimension", THEORY)
    low = m.at("median_cosine", 1, arm="emergence", setting="low-dimension", **STRUCTURED)
    high = m.at("median_cosine", 1, arm="emergence", setting="high-dimension", **STRUCTURED)
    gap = (high - low).named("median step-one cosine, high − low dimension")
    return gap.equals(0, within=0.02, because="a twentieth of the fall that the source prints")


@part.claims_over(
    {
        "C4o": {"setting": "low-dimension", "words": "few"},
        "C4p": {"setting": "high-dimension", "words": "many"},
    },
    statement="With {words} input dimensions the neurons are aligned with the relevant patterns after two steps on "
    "structured parity (median |cos| at least 0.99).",
    source="Table 3",
    when=THEORY,
)
def aligned_at_dimension(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.at("median_cosine", 2, arm="emergence", setting=setting, **STRUCTURED).at_least(0.99)


@part.claim(
    "C6k",
    "On parity of inputs without structure the first gradient shows nothing: along relevant patterns it is no larger "
    "than twice the noise along others.",
    source="Theorem on statistical queries: no query about single patterns tells the relevant ones",
    when=THEORY,
    setting="parity",
)
def nothing_without_structure(m: Measurements[Params]) -> Judgement:
    where = {"arm": "emergence", "setting": "parity", "inputs": "uniform"}
    return m.at("relevant_over_background", 1, **where).named("relevant / background components").at_most(2)


@part.claim(
    "N1",
    "With shuffled labels of structured parity data the median neuron's cosine with the relevant patterns after two "
    "steps is at most 1.96 times the scale of sampling noise.",
    source="control; noise gives a cosine of the scale √(Var(count)/k)/σ̃, which 5 % of seeds exceed 1.96 times",
    when=THEORY,
    setting="parity",
)
def shuffled_direction(m: Measurements[Params]) -> Judgement:
    found = m.at("median_cosine", 2, arm="emergence", setting="parity", inputs="shuffled")
    scale = shuffled_cosine_scale(m.params_of("parity").problem())
    return (found / scale).named("median |cos| / scale of noise").at_most(1.96)


@part.phase(
    "P1",
    "After two steps neurons stand within 10° of the sum of the relevant patterns (root mean square of the tangent).",
    source="The angle that sampling noise leaves, over numbers of samples and of patterns",
)
def within_an_angle(m: Measurements[Params]) -> Judgement:
    return m.at("tangent", 2, **ON_PARITY).named("tangent after two steps").below(ANGLE)


@part.boundary(
    "P1",
    says="They do where (D − k)p_o(1 − p_o)/(nkγ²) is below tan² 10°.",
    arms=("emergence",),
    point={"setting": "parity", "inputs": "structured"},
)
def angle_law(params: Params) -> float:
    problem = params.problem(basis="ambient")
    tangent = expected_tangent(
        params.relevant, params.patterns, params.samples, problem.background_mean, params.stages().gamma
    )
    return math.log(ANGLE / tangent)
