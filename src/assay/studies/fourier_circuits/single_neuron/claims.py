"""The claims on the best single neuron: its value (C1), its shape (C2), and a control at p = 2."""

from __future__ import annotations

import polars as pl

from assay.lab import Every, Judgement, Measurements

from ..problem import pair
from .arms import Params, part

ROUNDING = 1e-10


def _odd(m: Measurements[Params], metric: str) -> Every:
    """The rows of odd p; those of p = 2 belong to a control."""
    return m.every(metric, arm="single-neuron", p=sorted({pair(case)[0] for case in m.params.ascents}))


@part.claim(
    "C1c",
    "an optimiser of a single neuron ends at γ* from every random start",
    source="Lemma 4.10; block-coordinate ascent",
)
def reaches(m: Measurements[Params]) -> Judgement:
    return _odd(m, "ratio_low").named("J/γ* of the worst start").between(1, 1, tolerance=ROUNDING)


@part.claim(
    "C1j",
    "and from no start above γ*: no single neuron does better",
    source="Lemma 4.10; block-coordinate ascent",
)
def never_above(m: Measurements[Params]) -> Judgement:
    return _odd(m, "ratio_high").named("J/γ* of the best start").at_most(1, tolerance=ROUNDING)


@part.claim("C2a", "the best neuron is a pure cosine in each of its k+1 vectors", source="Theorem 4.9, Lemma 4.10")
def pure(m: Measurements[Params]) -> Judgement:
    return _odd(m, "power").named("share of one frequency").at_least(1, tolerance=ROUNDING)


@part.claim("C2b", "all k+1 vectors have the same length", source="Theorem 4.9, Lemma 4.10")
def same_length(m: Measurements[Params]) -> Judgement:
    return _odd(m, "amplitude_spread").named("spread of lengths").at_most(0, tolerance=1e-7)


@part.claim("C2c", "and the phases add up: Σθ_l = θ_w mod 2π", source="Theorem 4.9, Lemma 4.10")
def phases_add_up(m: Measurements[Params]) -> Judgement:
    return _odd(m, "phase_residual").named("|Σθ_l − θ_w|").at_most(0, tolerance=1e-7)


@part.claim("N4", "at p = 2 the optimum is not the formula's: 2^{(k−1)/2} times it", source="Control: even p")
def at_two(m: Measurements[Params]) -> Judgement:
    def largest(rows: pl.DataFrame) -> float:
        return float((rows["value"].to_numpy() / 2.0 ** ((rows["k"].to_numpy() - 1) / 2)).max())

    rows = m.rows("ratio_high", arm="single-neuron", p=2)
    return m.per_seed(rows, largest, "largest J/(formula·2^{(k−1)/2})").between(1 - 1e-9, 1 + 1e-9)
