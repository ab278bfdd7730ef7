"""Claims about capacity: which features are encoded (C3), and that this alone promises no label (C4)."""

from __future__ import annotations

from assay.lab import Exact, Judgement, Measurements

from ..theory import decreasing
from .arms import Params, part


@part.claim(
    "C3a",
    "Below the exact threshold of the norm (at most 0.95 B₂), trained contrastive tables give the same vector to "
    "states that differ in a rare feature.",
    source="Theorem 7.2 (2) with the threshold derived for three states; zero up to 1 % of the norm",
)
def collapsed_below(m: Measurements[Params]) -> Judgement:
    below = [x for x in m.params.norm_multiples if x <= 0.95]
    return m.every("separation", arm="thresholds", multiple=below).named("distance / norm").at_most(0.01)


@part.claim(
    "C3b",
    "Above the exact threshold of the norm (at least 1.05 B₂), trained contrastive tables tell states apart that "
    "differ in a rare feature.",
    source="Theorem 7.2 (2) with the threshold derived for three states; apart by more than 1 % of the norm",
    headline=True,
)
def encoded_above(m: Measurements[Params]) -> Judgement:
    above = [x for x in m.params.norm_multiples if x >= 1.05]
    return m.every("separation", arm="thresholds", multiple=above).named("distance / norm").at_least(0.01)


@part.claim(
    "C3c",
    "The norm from which on a feature is encoded falls as the probability rises that two draws differ in this feature "
    "alone.",
    source="Theorem 7.2 (2), monotonicity; B₂(q) = √(½ ln((1 − 3q)/q)) against 2q²",
)
def monotone(m: Measurements[Params]) -> Judgement:
    found = [m.exact("threshold", arm="thresholds", share=q).value for q in m.params.rare_shares]
    return Exact(decreasing(found), "smallest fall of B₂ from q to the next").above(0)


@part.claim(
    "C3d",
    "The source's construction lowers the contrastive loss only from a norm on that lies above the exact threshold.",
    source="proof of Theorem 7.2 (2): h = [√(1 − a²) f, a‖f‖ 1_z] with a² = 1/(2B²); it proves existence, not the "
    "value",
)
def construction_is_late(m: Measurements[Params]) -> Judgement:
    gap = m.every("construction", arm="thresholds") - m.every("threshold", arm="thresholds")
    return gap.named("construction's norm − B₂").at_least(0)


@part.claim(
    "C4a",
    "No representation of four even states by unit vectors of the plane has a lower logistic contrastive loss than the "
    "XOR layout.",
    source="Appendix F.1.1; random starts, descent to within 1e-6",
)
def xor_is_optimal(m: Measurements[Params]) -> Judgement:
    return m.every("best_of_starts", arm="xor").named("best loss found − XOR's").at_least(0, tolerance=1e-9)


@part.claim(
    "C4b",
    "On the XOR layout, an optimum of the contrastive loss, every linear classifier without bias is right on half of "
    "the states only.",
    source="Appendix F.1.1; with a bias three of four are right",
    headline=True,
)
def probe_fails(m: Measurements[Params]) -> Judgement:
    return m.exact("homogeneous", arm="xor").named("best accuracy without bias").between(0.5, 0.5)


@part.claim(
    "C4c",
    "On the XOR layout the best linear classifier with a bias is right on three states of four.",
    source="Derived: the printed 1/2 is for classifiers without bias",
)
def probe_with_bias(m: Measurements[Params]) -> Judgement:
    return m.exact("affine", arm="xor").named("best accuracy with bias").between(0.75, 0.75)


@part.claim(
    "N4",
    "The four vectors of the XOR layout in another order have the same contrastive loss and are linearly separable.",
    source="control: the loss is blind to what decides about the probe",
)
def another_order(m: Measurements[Params]) -> Judgement:
    gap = m.exact("order_error", arm="xor").value
    found = m.exact("separable", arm="xor").value - gap
    return Exact(found, "accuracy − difference in loss").at_least(1 - 1e-9)
