"""The claims of the source, each with a criterion that can fail, and the controls: emergence and success. What fixed
features cannot (C5 to C7) is in ``comparison_claims.py``, real images (C8) are in ``image_claims.py``."""

from __future__ import annotations

from itertools import pairwise

from assay.lab import Judgement, Measurements, Values, combine

from .study import study

PARITY = {
    "parity of an odd number of relevant patterns": lambda p: p.labels == "parity" and p.relevant % 2 == 1,
    "the structured mixture": lambda p: p.structured == "mixture",
}
THEORY = {
    **PARITY,
    "a background rate of 1/2, where the background is independent": lambda p: p.background == 0.5,
    "exact erasure of the old weights (forget = 1)": lambda p: p.forget == 1,
}
INTERVAL = {"interval labels": lambda p: p.labels == "interval"}
STRUCTURED = {"inputs": "structured"}


def accuracy_of(m: Measurements, arm: str, setting: str = "parity", **where: object) -> Values:
    if arm in ("network", "ntk", "random-features"):
        where = {**STRUCTURED, **where}
    return m.final("test_accuracy", arm=arm, setting=setting, **where)


@study.claim(
    "C1",
    "a network of 3(k+1) neurons along the sum of the relevant patterns outputs the label exactly",
    source="Lemma on representability; any label set, 100 random cases per seed",
)
def representable(m: Measurements) -> Judgement:
    return m.every("largest_error", arm="good-network").named("|g − y|").at_most(0, tolerance=1e-9)


@study.claim("C1b", "its output weights stay within 32k", source="Lemma on representability")
def representable_outputs(m: Measurements) -> Judgement:
    return m.every("output_share_of_bound", arm="good-network").named("|a*|/(32k)").at_most(1, tolerance=1e-9)


@study.claim("C1c", "its biases are at least 1/(32k) in modulus", source="Lemma on representability")
def representable_biases(m: Measurements) -> Judgement:
    return m.every("bias_share_of_bound", arm="good-network").named("32k|b*|").at_least(1, tolerance=1e-9)


@study.claim(
    "C2a",
    "the first gradient's component on relevant patterns is β_iγ/σ̃",
    source="Step-one lemma",
    when=THEORY,
    setting="parity",
)
def emergence_signal(m: Measurements) -> Judgement:
    ratio = m.at("signal_ratio", 1, arm="emergence", setting="parity", inputs="structured")
    return ratio.named("mean component / (βγ/σ̃)").between(0.95, 1.05)


@study.claim(
    "C2b",
    "neurons with a larger gate β_i get a larger component",
    source="Step-one lemma",
    when=THEORY,
    setting="parity",
)
def emergence_by_neuron(m: Measurements) -> Judgement:
    values = m.at("component_correlation", 1, arm="emergence", setting="parity", inputs="structured")
    return values.named("correlation over neurons with β").at_least(0.99)


@study.claim(
    "C2c",
    "background components are sampling noise: no larger than √(β/n)σ_φ",
    source="Step-one lemma; the lemma's own error term is far below the sampling noise at these sizes",
    when=THEORY,
    setting="parity",
)
def emergence_background(m: Measurements) -> Judgement:
    values = m.at("background_over_noise", 1, arm="emergence", setting="parity", inputs="structured")
    return values.named("background / sampling noise").between(0.5, 1.05)


@study.claim(
    "C3a",
    "the second step brings the neurons nearer to ±Σ_A M_j",
    source="Step-two lemma; at n = 2,000 of 400 patterns, where sampling noise is visible",
    when=THEORY,
    setting="tiny-samples",
)
def second_step_improves(m: Measurements) -> Judgement:
    where = {"arm": "emergence", "setting": "tiny-samples", "inputs": "structured"}
    return (m.at("tangent", 2, **where) / m.at("tangent", 1, **where)).named("tan(step 2)/tan(step 1)").below(1)


@study.claim(
    "C3b",
    "after two steps every neuron is aligned (|cos| ≥ 0.99)",
    source="Step-two lemma, Table 1 (which prints the largest cosine, 0.997)",
    when=THEORY,
    setting="parity",
)
def second_step_aligns(m: Measurements) -> Judgement:
    rows = m.every("smallest_cosine", step=2, arm="emergence", setting="parity", inputs="structured")
    return rows.named("neuron's |cos|").at_least(0.99)


@study.claim(
    "C3c",
    "the angle after step two is that of the empirical E[yx]: tan² = (D−k)p_o(1−p_o)/(nkγ²)",
    source="Derived from the step-two lemma as η⁽¹⁾ → 0",
    when=THEORY,
    setting="parity",
)
def second_step_angle(m: Measurements) -> Judgement:
    where = {"arm": "emergence", "setting": "parity", "inputs": "structured"}
    ratio = m.at("tangent", 2, **where) / m.at("expected_tangent", 2, **where)
    return ratio.named("tan measured / predicted").between(0.85, 1.15)


@study.claim(
    "C3d",
    "the angle after step one is the same times √κ",
    source="Derived from the step-one lemma",
    when=THEORY,
    setting="parity",
)
def first_step_angle(m: Measurements) -> Judgement:
    where = {"arm": "emergence", "setting": "parity", "inputs": "structured"}
    ratio = m.at("tangent", 1, **where) / m.at("expected_tangent", 1, **where)
    return ratio.named("tan measured / predicted").between(0.85, 1.15)


@study.claim(
    "C3e", "a head on step-two features is accurate", source="Table 1", when=PARITY, setting="parity", paper="100.0 %"
)
def two_step_head(m: Measurements) -> Judgement:
    return accuracy_of(m, "two-step").at_least(0.99)


@study.claim(
    "C3f",
    "a head on the raw step-one features is at chance",
    source="Table 1",
    when=PARITY,
    setting="parity",
    paper="52.2 %",
)
def one_step_head(m: Measurements) -> Judgement:
    return accuracy_of(m, "one-step", head="raw").at_most(0.55)


@study.claim(
    "C3g",
    "step one already has the directions: with the norms of step two its features are as good",
    source="Table 1 read through its scales: ‖w⁽¹⁾‖ is of order η⁽¹⁾, the biases are not",
    printed="one step does not give good features (52.2 % against 100 %)",
    when=THEORY,
    setting="parity",
)
def one_step_rescaled(m: Measurements) -> Judgement:
    return accuracy_of(m, "one-step", head="rescaled").at_least(0.99)


@study.claim(
    "C3h",
    "on labels of hidden codes two steps bring a neuron to E[yx] (|cos| ≥ 0.95)",
    source="Figure 15",
)
def codes_align(m: Measurements) -> Judgement:
    return m.at("largest_cosine", 2, arm="codes").at_least(0.95)


@study.claim("C3i", "there the neurons' mutual |cos| grows with each step", source="Figure 15")
def codes_cluster(m: Measurements) -> Judgement:
    cosines = [m.at("pairwise_cosine", step, arm="codes") for step in range(3)]
    rises = [later - sooner for sooner, later in pairwise(cosines)]
    return combine(min, rises, "smallest rise of mean |cos| in a step").above(0)


for _letter, _share in (("j", 80), ("k", 90)):

    @study.claim(
        f"C3{_letter}",
        f"with {_share} % of one class a head on step-two features is accurate (balanced)",
        source="Table 4",
        when=PARITY,
        setting=f"imbalance-{_share}",
        paper="100.0 %",
    )
    def two_step_imbalanced(m: Measurements, setting: str = f"imbalance-{_share}") -> Judgement:
        return m.final("balanced_accuracy", arm="two-step", setting=setting).at_least(0.99)


for _letter, _share in (("l", 80), ("m", 90)):

    @study.claim(
        f"C3{_letter}",
        f"with {_share} % of one class raw step-one features are at chance (balanced)",
        source="Table 4: its accuracies are those of a constant answer",
        when=PARITY,
        setting=f"imbalance-{_share}",
    )
    def one_step_imbalanced(m: Measurements, setting: str = f"imbalance-{_share}") -> Judgement:
        return m.final("balanced_accuracy", arm="one-step", setting=setting, head="raw").at_most(0.55)


@study.claim(
    "C4a",
    "the network solves structured parity",
    source="Theorem 2.1, Table 1",
    when=PARITY,
    setting="parity",
    paper="100.0 %",
)
def network_succeeds(m: Measurements) -> Judgement:
    return accuracy_of(m, "network").at_least(0.99)


_VARIED = {
    "b": ("low-dimension", "in the low-dimensional setting (d = 100 in the source)", "Table 3"),
    "c": ("high-dimension", "in the high-dimensional setting (d = 2,000)", "Table 3"),
    "d": ("fewer-samples", "with fewer samples (half in the source)", "Table 5"),
    "e": ("few-samples", "with few samples (a fifth)", "Table 5"),
}
for _letter, (_setting, _words, _table) in _VARIED.items():

    @study.claim(
        f"C4{_letter}",
        f"the network solves structured parity {_words}",
        source=_table,
        when=PARITY,
        setting=_setting,
        paper="100.0 %",
    )
    def network_succeeds_varied(m: Measurements, setting: str = _setting) -> Judgement:
        return accuracy_of(m, "network", setting).at_least(0.99)


for _letter, _share in (("f", 80), ("g", 90)):

    @study.claim(
        f"C4{_letter}",
        f"the network solves structured parity with {_share} % of one class (balanced accuracy)",
        source="Table 4",
        when=PARITY,
        setting=f"imbalance-{_share}",
        paper="100.0 %",
    )
    def network_imbalanced(m: Measurements, setting: str = f"imbalance-{_share}") -> Judgement:
        return m.final("balanced_accuracy", arm="network", setting=setting, **STRUCTURED).at_least(0.99)


@study.claim(
    "C4h",
    "the alignment after one step does not depend on the input dimension",
    source="Table 3",
    printed="after one step it falls from 0.967 to 0.560 between d = 100 and d = 2,000",
    when=THEORY,
    setting="parity",
)
def alignment_without_dimension(m: Measurements) -> Judgement:
    where = {"arm": "emergence", "inputs": "structured"}
    low = m.at("largest_cosine", 1, setting="low-dimension", **where)
    high = m.at("largest_cosine", 1, setting="high-dimension", **where)
    return (high - low).named("step-one cosine, high minus low dimension").between(-0.02, 0.02)


@study.claim("C4i", "networks on Gaussian clusters send a neuron to every centre (cos ≥ 0.7)", source="Figure 16")
def centres_covered(m: Measurements) -> Judgement:
    return m.final("worst_centre_cosine", arm="mixture", mixture="25-4").at_least(0.7)


@study.claim("C4j", "so do they in 100 dimensions with four factors", source="Figure 16")
def centres_covered_wide(m: Measurements) -> Judgement:
    return m.final("worst_centre_cosine", arm="mixture", mixture="100-4").at_least(0.7)


for _letter, _name in (("k", "25-4"), ("l", "100-4")):

    @study.claim(
        f"C4{_letter}",
        f"training brings a neuron at least 0.2 nearer to every centre ({_name.replace('-', ' dimensions, ')} factors)",
        source="Figure 16",
    )
    def centres_approached(m: Measurements, mixture: str = _name) -> Judgement:
        return m.final("smallest_rise", arm="mixture", mixture=mixture).named("smallest rise of a centre").at_least(0.2)


@study.claim(
    "C4m",
    "the five-factor mixture of 100 dimensions is covered too (cos ≥ 0.7)",
    source="Figure 16",
    when={"the five-factor mixture among the mixtures": lambda p: "100-5" in p.mixtures},
)
def centres_covered_five(m: Measurements) -> Judgement:
    return m.final("worst_centre_cosine", arm="mixture", mixture="100-5").at_least(0.7)


@study.claim(
    "C4n", "and the clusters are told apart (test accuracy ≥ 0.9, 100 dimensions, four factors)", source="Figure 16"
)
def mixture_learned(m: Measurements) -> Judgement:
    return m.final("test_accuracy", arm="mixture", mixture="100-4").at_least(0.9)


for _letter, _setting in (("o", "low-dimension"), ("p", "high-dimension")):

    @study.claim(
        f"C4{_letter}",
        f"neurons are aligned after two steps in the setting {_setting} (median |cos| ≥ 0.99)",
        source="Table 3",
        when=THEORY,
        setting=_setting,
    )
    def aligned_at_dimension(m: Measurements, setting: str = _setting) -> Judgement:
        return m.at("median_cosine", 2, arm="emergence", setting=setting, **STRUCTURED).at_least(0.99)


@study.claim("N1", "with shuffled labels no neuron finds the relevant patterns", source="control")
def shuffled_direction(m: Measurements) -> Judgement:
    return m.at("median_cosine", 2, arm="emergence", setting="parity", inputs="shuffled").at_most(0.5)


@study.claim("N2", "with shuffled labels the trained network does not reach the network's accuracy", source="control")
def shuffledaccuracy_of(m: Measurements) -> Judgement:
    return m.best("test_accuracy", arm="network", setting="parity", inputs="shuffled").at_most(0.7)


from . import comparison_claims, image_claims  # noqa: E402, F401 (they register themselves)
