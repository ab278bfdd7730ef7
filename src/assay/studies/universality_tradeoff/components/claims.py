"""Claims about what contrastive learning encodes: components of averaged inputs (C1), nothing spurious (C2)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, combine

from .arms import CURVED, GENERATIONS, Params, part

ROUNDING = 1e-10


@part.claim(
    "C1a",
    "In a finite model the contrastive loss with ℓ(t) = −t is minus the variance of the augmentation-averaged "
    "representation, for any table.",
    source="Theorem 7.1; double precision, losses of order 10",
)
def pca_identity(m: Measurements[Params]) -> Judgement:
    return m.every("pca_error", arm="identities").named("|loss + variance|").at_most(ROUNDING)


@part.claim(
    "C1b",
    "A linear encoder trained contrastively captures the variance that principal components of augmentation-averaged "
    "inputs do, within 1 %.",
    source="Theorem 7.1, linear case, by stochastic gradient on sampled triples; 1 % for their noise",
    headline=True,
)
def finds_components(m: Measurements[Params]) -> Judgement:
    found = [m.final("captured", arm="principal-components", generation=g) for g in GENERATIONS]
    least = combine(min, found, "captured share, least of three data maps")
    return least.as_share().at_least(0.99)  # of variance: no part of its interval lies above 1


@part.claim(
    "N1",
    "Principal components of the raw inputs capture less of the averaged inputs' variance than contrastive training.",
    source="control: the raw inputs' largest variance is spurious",
)
def raw_components(m: Measurements[Params]) -> Judgement:
    where = {"arm": "principal-components"}
    gaps = [
        m.final("captured", generation=g, **where) - m.final("captured_by_raw", generation=g, **where)
        for g in GENERATIONS
    ]
    return combine(min, gaps, "captured share, trained − raw components, least of three").above(0)


@part.claim(
    "C2a",
    "Averaging a representation over the augmentations never raises a convex contrastive loss, in any of many random "
    "tables.",
    source="Theorem 7.2 (1), its first step: Jensen's inequality, for four losses",
)
def jensen(m: Measurements[Params]) -> Judgement:
    return m.every("jensen_gap", arm="identities").named("loss − loss of the average").at_least(0, tolerance=ROUNDING)


@part.claim(
    "C2b",
    "A representation that ignores the augmentations attains Jensen's bound on its contrastive loss.",
    source="Theorem 7.2 (1), the case of equality",
)
def equality(m: Measurements[Params]) -> Judgement:
    return m.every("blind_error", arm="identities").named("|loss − bound|").at_most(ROUNDING)


@part.claim(
    "X1a",
    "Restoring the norm of an averaged representation, with one coordinate per invariant state, never raises its "
    "convex contrastive loss, in any of many random tables.",
    source="Derived: the step to constant norm that the proof of Theorem 7.2 (1) leaves out",
)
def constant_norm(m: Measurements[Params]) -> Judgement:
    found = m.every("repaired_gap", arm="identities").named("loss of the average − loss with its norm restored")
    return found.at_least(0, tolerance=ROUNDING)


@part.claim(
    "C2c",
    "Tables of constant norm trained on logistic or exponential contrastive loss end without any variation over the "
    "spurious state.",
    source="Theorem 7.2 (1); a millionth of the norm² for the descent",
)
def trained_invariance(m: Measurements[Params]) -> Judgement:
    found = m.every("variation", arm="invariance", view="redrawn", loss=list(CURVED))
    return found.named("variance over z_U / norm²").at_most(1e-6)


@part.claim(
    "X1b",
    "The hinge loss cannot tell an encoder that varies with the spurious state from its optimum: the two losses are "
    "equal.",
    source="Derived: (A3) asks for a convex loss, and invariance needs it curved at 0",
    printed="under (A3), convex, decreasing and lower-bounded, every optimal representation is independent of z_U",
)
def hinge_is_blind(m: Measurements[Params]) -> Judgement:
    return m.exact("turned_loss", arm="identities", loss="hinge").named("|loss, varying − invariant|").at_most(1e-12)


@part.claim(
    "N2",
    "The logistic contrastive loss differs by at least 0.001 between an encoder that varies with the spurious state "
    "and the invariant one.",
    source="control for the counterexample with the hinge loss",
)
def logistic_sees(m: Measurements[Params]) -> Judgement:
    return m.exact("turned_loss", arm="identities", loss="logistic").named("|loss, varying − invariant|").at_least(1e-3)


@part.claim(
    "N3",
    "Tables trained with a second view that keeps the spurious state do encode it, by more than 10 % of their norm².",
    source="control: nothing but the augmentation makes a feature spurious",
)
def kept_state(m: Measurements[Params]) -> Judgement:
    found = m.every("variation", arm="invariance", view="kept", loss=list(CURVED))
    return found.named("variance over z_U / norm²").at_least(0.1)
