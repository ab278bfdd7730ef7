"""C9: a linear centroid model is no worse without a split, and the two-layer network reverses that order."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from ..learners import TT, TV
from ..theorems.claims import ours
from .arms import Params, part


def _error(m: Measurements[Params], split: str) -> Values:
    return m.final("linear_error", arm="linear", split=split)


@part.claim("C9a", "the data are linearly realisable: ⟨θ*, x⟩ = y for every sample", source="Section 3")
def realisable(m: Measurements[Params]) -> Judgement:
    return m.every("realisable_error", arm="linear").named("|⟨θ*, x⟩ − y|").at_most(0, tolerance=1e-12)


@part.claim(
    "C9b",
    "a linear centroid model on the same data is no worse without a split",
    source="Comparison with the linear theory: ridge regression inside, least squares outside",
)
def linear_order(m: Measurements[Params]) -> Judgement:
    return (_error(m, TV) - _error(m, TT)).named("squared error with − without a split").at_least(0)


@part.claim("C9c", "the two-layer network reverses that order", source="Theorems 4.4 and 4.5")
def network_order(m: Measurements[Params]) -> Judgement:
    return (ours(m, "test_loss", TT) - ours(m, "test_loss", TV)).named("loss without − with a split").above(0)


@part.claim(
    "C9d",
    "nor with as few equations as the split leaves: both loops on the support half",
    source="the same; without a split there are twice as many outer equations, which C9b cannot tell apart",
)
def linear_order_of_halves(m: Measurements[Params]) -> Judgement:
    return (_error(m, TV) - _error(m, "support only")).named("squared error with a split − support half").at_least(0)
