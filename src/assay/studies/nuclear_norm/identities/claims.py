"""Controls on the norm itself (N) and the corrected stable rank."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Params

from .arms import part

ROUNDING = 1e-9


@part.claim(
    "N2",
    "The gradient of the nuclear norm by automatic differentiation is U·Vᵀ, and finite differences of the norm agree, "
    "on random matrices of three shapes.",
    source="control: the subgradient at full rank; differences of the norm from eigenvalues of the Gram matrix",
)
def gradient(m: Measurements[Params]) -> Judgement:
    found = m.every(["gradient_error", "difference_error"], arm="norm-identities")
    return found.named("|autograd − U·Vᵀ| and |differences − U·Vᵀ|").at_most(0, tolerance=1e-5)


@part.claim(
    "N3",
    "For one logit no feature extractor with the same classifier has a smaller nuclear norm than that of rank one, "
    "‖Xv‖/‖h‖.",
    source="Derived; random instances",
)
def least(m: Measurements[Params]) -> Judgement:
    # The rank-one extractor attains the value, and nothing lies below it.
    others = m.final("least_of_others", arm="rank-one") - m.final("attained_error", arm="rank-one")
    return others.named("least norm of others/‖Xv‖·‖h‖").at_least(1 - ROUNDING)


@part.claim(
    "X9",
    "The stable rank ‖F‖_F²/‖F‖₂² of features does not change when they are scaled by 3, and the printed ‖F‖_F²/‖F‖₂ "
    "triples.",
    source="Section 6.3, definition of the stable rank",
    printed="‖F‖_F²/‖F‖₂, whose fall with the strength of the penalty may be the fall of the features' scale alone",
)
def corrected_rank(m: Measurements[Params]) -> Judgement:
    # Neither is negative, so that none can make up for the other.
    printed = m.every("printed_moved", arm="norm-identities").map(lambda growth: abs(growth / 3 - 1))
    moved = m.every("stable_rank_moved", arm="norm-identities").map(abs)
    both = (printed + moved).named("|growth of the printed one/3 − 1| + |change of the stable rank|")
    return both.at_most(0, tolerance=ROUNDING)
