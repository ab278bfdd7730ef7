"""The claims on constructed networks: their margin (C1), their frequencies and neurons (C3), and two controls."""

from __future__ import annotations

import numpy as np
import polars as pl

from assay.lab import Judgement, Measurements

from .arms import Params, part

ROUNDING = 1e-10


@part.claim(
    "C1a",
    "the constructed network's smallest margin over all p^k inputs is γ* at every (p, k)",
    source="Theorem 4.9, Lemma 4.11; brute force",
)
def attains(m: Measurements[Params]) -> Judgement:
    margins = m.every("margin_ratio", arm="construction", construction="polarisation")
    return margins.named("smallest margin/γ*").between(1, 1, tolerance=ROUNDING)


@part.claim(
    "C1b",
    "so is the mean margin, and all wrong labels tie: f = γ*(1[c = Σa] − 1/p)",
    source="Theorem 4.9, Condition 4.8",
)
def ties(m: Measurements[Params]) -> Judgement:
    deviations = m.every("logit_deviation", arm="construction", construction="polarisation")
    return deviations.named("|f/γ* − (1[c = Σa] − 1/p)|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C3a",
    "the maximum-margin function uses every frequency equally: f̂(j, ..., j, −j) = γ*p^k for all j ≠ 0",
    source="Lemma C.20",
)
def every_frequency(m: Measurements[Params]) -> Judgement:
    deviations = m.every("diagonal_deviation", arm="construction", construction="polarisation")
    return deviations.named("|f̂/(γ*p^k) − 1|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C3b",
    "2^{2k−1} neurons per frequency are enough (32 at k = 3)",
    source="Theorem 4.9, Lemma C.17",
    printed="56 neurons per frequency at k = 3",
)
def enough_neurons(m: Measurements[Params]) -> Judgement:
    """Neurons of the networks that reached γ*, over the source's number."""

    def largest(rows: pl.DataFrame) -> float:
        claimed = [2 ** (2 * k - 2) * (p - 1) for p, k in rows.select("p", "k").iter_rows()]
        reached = rows["value"].to_numpy() >= 1 - ROUNDING
        return float(np.where(reached, rows["neurons"].to_numpy() / np.array(claimed), np.inf).max())

    rows = m.rows("margin_ratio", arm="construction", construction="polarisation")
    return m.per_seed(rows, largest, "neurons/(2^{2k−2}(p−1)) where γ* is reached, worst pair").at_most(1)


@part.claim(
    "C3c",
    "they are not needed: 3^k per frequency, phases in thirds of a turn, attain γ* as well",
    source="Beyond the source, which calls its bound possibly loose",
)
def fewer_neurons(m: Measurements[Params]) -> Judgement:
    margins = m.every("margin_ratio", arm="construction", construction="thirds")
    return margins.named("smallest margin/γ*").between(1, 1, tolerance=ROUNDING)


@part.claim("C3d", "without one frequency the margin is smaller", source="Theorem 4.9, third part")
def frequency_missing(m: Measurements[Params]) -> Judgement:
    return m.every("dropped_margin", arm="construction").named("margin ratio without ζ = 1").at_most(0.999)


@part.claim(
    "C3e",
    "though every neuron is still optimal: the expected margin sees nothing missing",
    source="Lemma 4.10",
)
def nothing_missing(m: Measurements[Params]) -> Judgement:
    margins = m.every("dropped_alignment", arm="construction")
    return margins.named("J/bound without ζ = 1").between(1, 1, tolerance=ROUNDING)


@part.claim(
    "N2",
    "reading the outputs backwards (c to −c) turns the margin into at most −γ* somewhere",
    source="Control: the sign of the phases",
)
def backwards(m: Measurements[Params]) -> Judgement:
    margins = m.every("reversed_ratio", arm="construction").named("margin ratio, outputs reversed")
    return margins.at_most(-1, tolerance=ROUNDING)


@part.claim("N3", "the certificate rejects a network perturbed by 1 %", source="Control: the certificate")
def perturbed(m: Measurements[Params]) -> Judgement:
    return m.every("perturbed_ratio", arm="construction").named("margin ratio, perturbed").at_most(0.9999)
