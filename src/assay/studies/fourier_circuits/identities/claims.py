"""The claims on the source's closed forms (C1d to C1i), most of which correct a line of it."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .arms import part


@part.claim(
    "C1d",
    "the expected margin is k!/((p−1)p^k) Σ ŵ(−j)Π û_l(j), for vectors of any mean",
    source="Lemma C.14; against enumeration",
    printed="'by definition of w', as if ŵ(0) = 0 were needed",
)
def expected_margin(m: Measurements) -> Judgement:
    deviations = m.every("transform_deviation", arm="identities")
    return deviations.named("|formula − enumeration|/bound").at_most(0, tolerance=1e-12)


@part.claim("C1e", "for any network J ≤ γ*‖θ‖^{k+1}", source="Lemma C.5; random networks")
def bounded(m: Measurements) -> Judgement:
    return m.every("expected_share", arm="identities").named("J/(γ*‖θ‖^{k+1})").at_most(1)


@part.claim(
    "C1f",
    "and its smallest margin is at most J, the mean under q*, uniform on all inputs: θ* maximises that mean",
    source="Definition 4.5; random networks",
    printed="θ* ∈ argmin (twice); q* = unif(Z_p)",
)
def smallest_margin(m: Measurements) -> Judgement:
    return m.every("margin_share", arm="identities").named("(h − J)/bound").at_most(0)


@part.claim(
    "C1g",
    "Σ_ζ cos_ζ(Σa − c) is −1/2 for every wrong c, so that the unscaled margin is p/2",
    source="Lemmas C.17, C.18",
    printed="0 for every wrong c, margin (p−1)/2; and p/(p−1) = 1 − 1/(p−1)",
)
def wrong_labels(m: Measurements) -> Judgement:
    sums = m.every("sum_elsewhere_high", arm="identities").named("sum at wrong labels")
    return sums.between(-0.5, -0.5, tolerance=1e-12)


@part.claim("C1h", "2^k k! Πd is a signed sum of k-th powers, k = 2 to 7", source="Lemma C.16")
def powers(m: Measurements) -> Judgement:
    deviations = m.every("polarisation_deviation", arm="identities")
    return deviations.named("relative deviation").at_most(0, tolerance=1e-9)


@part.claim(
    "C1i",
    "cos(Σa − c) has 2^k products of cos and sin, sin_ζ being phase −π/2",
    source="Lemma 4.11",
    printed="cos(Σa) with 2^k terms, of which half vanish; sin_ζ as phase +π/2",
)
def products(m: Measurements) -> Judgement:
    return m.every("expansion_deviation", arm="identities").named("deviation").at_most(0, tolerance=1e-12)
