"""C9: a linear centroid model is no worse without a split, and the two-layer network reverses that order."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values, combine

from ..learners import TT, TV
from ..theorems.claims import ours
from .arms import Params, part


def _error(m: Measurements[Params], split: str) -> Values:
    return m.final("linear_error", arm="linear", split=split)


@part.claim(
    "C9b",
    "A linear centroid model, meta-trained on tasks with one shared feature and noise, has no larger squared error on "
    "new tasks without a split than with one.",
    source="Comparison with the linear theory: ridge regression inside, least squares outside",
)
def linear_order(m: Measurements[Params]) -> Judgement:
    return (_error(m, TV) - _error(m, TT)).named("squared error with − without a split").at_least(0)


@part.claim(
    "C9c",
    "On the same planted tasks a linear centroid model has the lower squared error without a split, and FOMAML's "
    "two-layer network the lower test loss with one.",
    source="Theorems 4.4 and 4.5, against C9b",
)
def network_order(m: Measurements[Params]) -> Judgement:
    linear, network = _error(m, TV) - _error(m, TT), ours(m, "test_loss", TT) - ours(m, "test_loss", TV)
    return combine(min, [linear, network], "smaller lead: linear without a split, network with one").above(0)


@part.claim(
    "C9d",
    "A linear centroid model with both loops on the support half, so as few equations as a split leaves, has no larger "
    "squared error than with a split.",
    source="as C9b; without a split there are twice as many outer equations, which C9b cannot tell apart",
)
def linear_order_of_halves(m: Measurements[Params]) -> Judgement:
    return (_error(m, TV) - _error(m, "support only")).named("squared error with a split − support half").at_least(0)
