"""Controls on the planted problem: cases that must come out the other way if the code is right."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values, pool

from ..learners import SPLITS, TV
from ..params import Planted
from .arms import part

EVEN = {"an even number of tasks": lambda p: p.tasks % 2 == 0}  # an odd one leaves a task whose labels correlate


def _control(m: Measurements[Planted], metric: str, case: str, split: str, adapts: bool = True) -> Values:
    return m.final(metric, arm="control", case=case, split=split, adapts=adapts)


@part.claim(
    "N1",
    "With random labels, balanced so that they have no correlation with the feature, FOMAML with a split learns "
    "nothing: test loss above 0.65.",
    source="Control of C3",
    when=EVEN,
)
def shuffled_labels(m: Measurements[Planted]) -> Judgement:
    return _control(m, "test_loss", "shuffled labels", TV).above(0.65)


@part.claim(
    "N2",
    "A split whose two halves are the same samples fails as none does: the test loss on new tasks ends above 0.65.",
    source="Control of C3",
)
def leaked_split(m: Measurements[Planted]) -> Judgement:
    return _control(m, "test_loss", "leaked split", "leaked").above(0.65)


@part.claim(
    "N3",
    "Inner steps at the rate γ = 0 change nothing: FOMAML ends with the test loss of descent without inner steps, to "
    "the last digits.",
    source="Control of C4",
)
def no_inner_rate(m: Measurements[Planted]) -> Judgement:
    apart = []
    for split in SPLITS:
        adapted, pooled = (_control(m, "test_loss", "no inner rate", split, adapts) for adapts in (True, False))
        apart.append((adapted - pooled).map(abs))
    return pool(apart, "difference of test losses").at_most(0, tolerance=1e-12)


@part.claim(
    "N4",
    "The engine on inner products ends with the weights of a direct computation on inputs, within 10⁻⁹ of their "
    "movement.",
    source="Control of every synthetic claim",
)
def same_weights(m: Measurements[Planted]) -> Judgement:
    return m.every("deviation", arm="engines").named("deviation/movement").at_most(0, tolerance=1e-9)


@part.claim(
    "N8",
    "With random labels, balanced so that they have no correlation with the feature, accuracy on new tasks stays "
    "within 0.1 of one half.",
    source="Control of C3",
    when=EVEN,
)
def shuffled_accuracy(m: Measurements[Planted]) -> Judgement:
    return _control(m, "test_accuracy", "shuffled labels", TV).equals(
        0.5, within=0.1, because="a fifth of what learning the feature adds"
    )
