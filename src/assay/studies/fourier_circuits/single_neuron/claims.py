"""The claims on the best single neuron: its value (C1), its shape (C2), and a control at p = 2."""

from __future__ import annotations

import polars as pl

from assay.lab import Every, Judgement, Measurements

from ..problem import pair
from .arms import Params, part

ROUNDING = 1e-10


def _odd(m: Measurements[Params], *metrics: str) -> Every:
    """The rows of odd p; those of p = 2 belong to a control."""
    return m.every(metrics, arm="single-neuron", p=sorted({pair(case)[0] for case in m.params.ascents}))


@part.claim(
    "C1c",
    "From every random start, an optimiser that knows nothing of Fourier ends at a neuron with just the mean margin "
    "that the theory calls largest (γ*).",
    source="Lemma 4.10, Definition 4.5; block-coordinate ascent",
    printed="θ* ∈ argmin (twice), which must be argmax; q* = unif(Z_p), which must be uniform on all p^k inputs",
    headline=True,
)
def reaches(m: Measurements[Params]) -> Judgement:
    ends = _odd(m, "ratio_low", "ratio_high").named("J/γ* of the worst and of the best start")
    return ends.between(1, 1, tolerance=ROUNDING)


@part.claim(
    "C2a",
    "The best single neuron, found by an optimiser that knows nothing of Fourier, is a pure cosine in each of its k "
    "input vectors.",
    source="Theorem 4.9, Lemma 4.10",
)
def pure(m: Measurements[Params]) -> Judgement:
    return _odd(m, "power").named("share of one frequency").at_least(1, tolerance=ROUNDING)


@part.claim(
    "C2b",
    "In the best single neuron, found from random starts, all k input vectors and the output vector have the same "
    "length.",
    source="Theorem 4.9, Lemma 4.10",
)
def same_length(m: Measurements[Params]) -> Judgement:
    return _odd(m, "amplitude_spread").named("spread of lengths").at_most(0, tolerance=1e-7)


@part.claim(
    "C2c",
    "In the best single neuron, found from random starts, the phases of the input vectors add up to that of the output "
    "vector (mod 2π).",
    source="Theorem 4.9, Lemma 4.10",
)
def phases_add_up(m: Measurements[Params]) -> Judgement:
    return _odd(m, "phase_residual").named("|Σθ_l − θ_w|").at_most(0, tolerance=1e-7)


@part.claim(
    "C2i",
    "In the best single neuron, found from random starts, all k input vectors and the output vector have the same "
    "frequency.",
    source="Theorem 4.9, Lemma 4.10",
)
def same_frequency(m: Measurements[Params]) -> Judgement:
    return _odd(m, "shared").named("all k+1 vectors at one frequency, at every start").at_least(1)


@part.claim(
    "N4",
    "At p = 2, where the theorem does not apply, the best single neuron has 2^{(k−1)/2} times the margin of its "
    "formula.",
    source="Control: even p",
)
def at_two(m: Measurements[Params]) -> Judgement:
    rows = m.rows("ratio_high", arm="single-neuron", p=2)
    rows = rows.with_columns(value=pl.col("value") / 2.0 ** ((pl.col("k") - 1) / 2))
    return Every(rows, "J/(formula·2^{(k−1)/2})").between(1, 1, tolerance=1e-9)
