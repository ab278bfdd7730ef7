"""Controls on the planted problem: cases that must come out the other way if the code is right."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values, pool

from ..learners import SPLITS, TV
from ..params import Planted
from .arms import part


def _control(m: Measurements[Planted], metric: str, case: str, split: str, adapts: bool = True) -> Values:
    return m.final(metric, arm="control", case=case, split=split, adapts=adapts)


@part.claim(
    "N1",
    "with labels that the feature does not tell, the split learns nothing (test loss above 0.65)",
    source="Control of C3",
)
def shuffled_labels(m: Measurements[Planted]) -> Judgement:
    return _control(m, "test_loss", "shuffled labels", TV).above(0.65)


@part.claim(
    "N2",
    "a split whose halves are the same samples fails like none (test loss above 0.65)",
    source="Control of C3",
)
def leaked_split(m: Measurements[Planted]) -> Judgement:
    return _control(m, "test_loss", "leaked split", "leaked").above(0.65)


@part.claim("N3", "with γ = 0 five inner steps are pooled descent, to the last digits", source="Control of C4")
def no_inner_rate(m: Measurements[Planted]) -> Judgement:
    apart = []
    for split in SPLITS:
        adapted, pooled = (_control(m, "test_loss", "no inner rate", split, adapts) for adapts in (True, False))
        apart.append((adapted - pooled).map(abs))
    return pool(apart, "difference of test losses").at_most(0, tolerance=1e-12)


@part.claim(
    "N4",
    "the engine on inner products gives the weights of the direct one",
    source="Control of every synthetic claim",
)
def same_weights(m: Measurements[Planted]) -> Judgement:
    return m.every("deviation", arm="engines").named("deviation/movement").at_most(0, tolerance=1e-9)


@part.claim(
    "N8",
    "with labels that the feature does not tell, accuracy stays within 0.1 of one half",
    source="Control of C3",
)
def shuffled_accuracy(m: Measurements[Planted]) -> Judgement:
    return _control(m, "test_accuracy", "shuffled labels", TV).between(0.4, 0.6)
