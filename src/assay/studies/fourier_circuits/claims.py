"""What is claimed of all trained networks together."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from .study import Params, study

TRAINED = ("full-data", "regularisation", "shuffled", "network", "weight-decay")


@study.claim(
    "C1k",
    "No trained network, at any step and in any setting, has a mean margin (J) above the theory's bound (γ*‖θ‖^{k+1}).",
    source="Lemma C.5; trained networks, all arms",
)
def never_above(m: Measurements[Params]) -> Judgement:
    return m.every("alignment_ratio", arm=TRAINED).named("J/(γ*‖θ‖^{k+1})").at_most(1, tolerance=1e-10)
