"""The claims on the source's closed forms (C1d, C1g to C1i), most of which correct a line of it."""

from __future__ import annotations

import numpy as np

from assay.lab import Exact, Judgement, Measurements

from .arms import part


@part.claim(
    "C1d",
    "The mean margin of any network over all inputs equals a sum over its neurons' Fourier coefficients, whatever the "
    "mean of its weights.",
    source="Lemma C.14, k!/((p−1)p^k) Σ ŵ(−j)Π û_l(j); against enumeration",
    printed="'by definition of w', as if ŵ(0) = 0 were needed",
)
def expected_margin(m: Measurements) -> Judgement:
    deviations = m.every("transform_deviation", arm="identities")
    return deviations.named("|formula − enumeration|/bound").at_most(0, tolerance=1e-12)


@part.claim(
    "C1g",
    "Summed over all frequencies ζ, cos(2πζ(Σa − c)/p) is (p−1)/2 at the right label c and −1/2 at every wrong one: a "
    "margin of p/2.",
    source="Lemmas C.17, C.18",
    printed="0 for every wrong c, margin (p−1)/2; and p/(p−1) = 1 − 1/(p−1)",
)
def sums_of_cosines(m: Measurements) -> Judgement:
    wanted = {"sum_at_answer": 0.0, "sum_elsewhere_low": -0.5, "sum_elsewhere_high": -0.5}
    found = {metric: m.rows(metric, arm="identities")["value"].to_numpy() for metric in wanted}
    worst = np.max([np.abs(values - wanted[metric]).max() for metric, values in found.items()])
    return Exact(float(worst), "largest deviation of a sum, over all labels and p").at_most(1e-12)


@part.claim(
    "C1h",
    "For k from 2 to 7, the product of k numbers, times 2^k k!, is a signed sum of k-th powers of their signed sums.",
    source="Lemma C.16",
)
def powers(m: Measurements) -> Judgement:
    deviations = m.every("polarisation_deviation", arm="identities")
    return deviations.named("relative deviation").at_most(0, tolerance=1e-9)


@part.claim(
    "C1i",
    "The wave cos(Σa − c) of k inputs and a label is a sum of 2^k products, each of a cosine or sine of every input "
    "and of the label.",
    source="Lemma 4.11",
    printed="cos(Σa) with 2^k terms, of which half vanish",
)
def products(m: Measurements) -> Judgement:
    return m.every("expansion_deviation", arm="identities").named("deviation").at_most(0, tolerance=1e-12)
