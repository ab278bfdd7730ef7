"""The claims on where training goes (C3): rare features catch up, the loss has a floor, descent has little regret."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, combine

from ..claims import EXACT
from .arms import Params, part


@part.claim(
    "C3h",
    "Half as frequent (ε = 0.5), rare features catch up when training goes on: their coefficients reach 90 % of the "
    "frequent ones'.",
    source="Stage 3 beyond its finite time",
    printed="at convergence strong coefficients are ε_j/ε_max of the largest",
    when={"ε = 0.5 among the frequencies": lambda p: 0.5 in p.rare},
    headline=True,
)
def catches_up(m: Measurements[Params]) -> Judgement:
    return m.final("energy_ratio", arm="longer", epsilon=0.5).named("rare/frequent coefficient").at_least(0.9)


@part.claim(
    "C3i",
    "With perfect neurons the InfoNCE loss stops at E log(1 + N), where N counts the negatives that contain the "
    "anchor's features.",
    source="Derived: finite-sample floor; 127 negatives",
    printed="the running average of the loss tends to 0",
)
def floor(m: Measurements[Params]) -> Judgement:
    ratio = m.final("floor_loss", arm="loss-floor") / m.final("floor_formula", arm="loss-floor")
    return ratio.named("loss/floor").equals(1, within=0.02, because="2 %, our choice, for sampling error")


@part.claim(
    "C3o",
    "Trained long, the InfoNCE loss exceeds the floor of perfect neurons by 1/log d at most, at every frequency (ε).",
    source="Stage 3: average loss O(1/log d), counted from the floor; last quarter of the steps",
)
def loss_excess(m: Measurements[Params]) -> Judgement:
    rows = m.rows("loss_excess", arm="longer")
    late = rows.filter(rows["step"] >= 0.75 * m.params.long_steps)
    means = [
        m.per_seed(late.filter(late["epsilon"] == epsilon), lambda curve: curve["value"].mean(), "mean loss − floor")
        for epsilon in m.params.rare
    ]
    level = 1 / math.log(m.params.majority + m.params.minority)
    return combine(max, means, "mean loss − floor, worst ε").at_most(level)


@part.claim(
    "C3j",
    "At the current weights the gradient of the proofs' pseudo-loss is τ times that of the InfoNCE loss, to rounding.",
    source="Optimal learner",
)
def pseudo_gradient(m: Measurements[Params]) -> Judgement:
    return m.every("pseudo_slope", arm="pseudo-loss").named("|∇L̃/τ − ∇L|/|∇L|").at_most(0, tolerance=EXACT)


@part.claim(
    "C3m",
    "At the current weights the value of the proofs' pseudo-loss is τ times that of the InfoNCE loss, to rounding.",
    source="Optimal learner",
)
def pseudo_value(m: Measurements[Params]) -> Judgement:
    return m.every("pseudo_value", arm="pseudo-loss").named("|L̃/τ − L|").at_most(0, tolerance=EXACT)


@part.claim(
    "C3k",
    "The proofs' pseudo-loss is convex, and descent on it stays below the regret bound of online descent.",
    source="Optimal learner",
)
def regret(m: Measurements[Params]) -> Judgement:
    bend = m.every("pseudo_bend", arm="pseudo-loss").at_most(0, tolerance=EXACT)
    share = m.every("pseudo_regret", arm="pseudo-loss").named("regret/bound").at_most(1)
    return share if bend.verdict == "holds" else bend
