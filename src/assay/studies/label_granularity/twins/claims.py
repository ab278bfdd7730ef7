"""Claims about other labels on a finite set (C9), and the controls for what fine labels do (N3, N4)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..params import ABOVE
from .arms import Params, part

_FIGURE5 = "Figure 5 on hierarchical patches, a finite set"


@part.claim(
    "C9v",
    "Random classes drawn once within the superclasses of a finite set of hierarchical patches leave 40 % or more of "
    "hard samples wrong.",
    source=_FIGURE5,
    when=ABOVE,
)
def random_within(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="twins", labels="random within").at_least(0.4)


@part.claim(
    "C9n",
    "Random labels over a whole finite set of hierarchical patches lose a tenth or more even of the easy samples.",
    source=_FIGURE5,
)
def random_over_all(m: Measurements[Params]) -> Judgement:
    return m.final("easy_error", arm="twins", labels="random").at_least(0.1)


@part.claim(
    "C9p",
    "Splitting the true subclasses of a finite set of hierarchical patches further at random keeps at least 95 % of "
    "hard samples right.",
    source=_FIGURE5,
    when=ABOVE,
)
def split(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="twins", labels="split at random").at_most(0.05)


@part.claim(
    "N3",
    "With 2k classes drawn at random within superclasses for every batch, 40 % or more of hard samples stay wrong.",
    source="control for C3",
    when=ABOVE,
)
def random_classes(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="twins", labels="random anew").at_least(0.4)


@part.claim(
    "N4",
    "With the true subclasses as labels, a finite set of hierarchical patches is enough to get at least 95 % of hard "
    "samples right.",
    source="control",
    when=ABOVE,
)
def true_classes(m: Measurements[Params]) -> Judgement:
    return m.final("hard_error", arm="twins", labels="fine").at_most(0.05)
