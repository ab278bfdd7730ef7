"""Claims about other labels on a finite set (C9), and the controls for what fine labels do (N3, N4)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..params import ABOVE
from .arms import Params, part

_FIGURE5 = "Figure 5 on hierarchical patches, a finite set"


@part.claim(
    "C9v",
    "on the synthetic twin random classes within the superclasses of a finite set leave hard samples wrong",
    source=_FIGURE5,
)
def random_within(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="twins", labels="random within").at_least(0.4)


@part.claim("C9n", "on the synthetic twin random labels over all samples lose even the easy ones", source=_FIGURE5)
def random_over_all(m: Measurements[Params]) -> Judgement:
    return m.final("easy_error", arm="twins", labels="random").at_least(0.1)


@part.claim("C9o", "and so do classes that unite subclasses of different superclasses", source=_FIGURE5)
def mixed(m: Measurements[Params]) -> Judgement:
    return m.final("easy_error", arm="twins", labels="mixed").at_least(0.4)


@part.claim("C9p", "splitting the true subclasses further at random keeps hard samples right", source=_FIGURE5)
def split(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="twins", labels="split at random").at_most(0.05)


@part.claim(
    "N3",
    "as many classes, drawn at random within the superclasses for every fresh batch, leave hard samples wrong: more "
    "outputs are not the reason",
    source="control for C3",
    when=ABOVE,
)
def random_classes(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="twins", labels="random anew").at_least(0.4)


@part.claim(
    "N4", "with the true subclasses the same finite set gives no error on hard samples", source="control", when=ABOVE
)
def true_classes(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="twins", labels="fine").at_most(0.05)
