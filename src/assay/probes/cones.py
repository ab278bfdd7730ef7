"""Directions that many vectors share: the share of vectors in a cone, and a greedy cover by cones.

The cone of D with width γ holds the vectors with |cos(v, D)| > 1 − γ, of both signs; zero is in no cone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, altair, chart
from assay.methods._arrays import of_tensors
from assay.methods._checks import all_finite, number, one_of, whole
from assay.methods._precision import full_precision

from .directions import cosines, unit_rows
from .intervals import clopper_pearson


def check_width(gamma: float) -> None:
    """Refuse a width outside (0, 1)."""
    number("gamma", gamma, above=0, below=1)


@dataclass(frozen=True, repr=False)
class ConeShare(Report):
    """``inside`` of ``rows`` vectors lie in the cone, are long enough and have the bias sign that was asked for."""

    inside: int
    rows: int
    gamma: float
    floor: float

    @property
    def share(self) -> float:
        return self.inside / self.rows

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Clopper and Pearson's exact interval, for vectors that were drawn independently."""
        number("level", level, above=0, below=1)
        return clopper_pearson(self.inside, self.rows, level)

    def headline(self) -> str:
        return f"{self.inside} of {self.rows} vectors lie in the cone of width {self.gamma:g} ({self.share:.3f})"

    def table(self) -> list[dict[str, float]]:
        return [{"inside": self.inside, "rows": self.rows, "share": self.share}]

    def figure(self) -> Any:
        low, high = self.interval()
        base = chart([{"share": self.share, "low": low, "high": high}])
        whole = altair().Scale(domain=[0, 1])
        reach = base.mark_rule().encode(x=altair().X("low:Q", scale=whole, title="share in the cone"), x2="high:Q")
        return (reach + base.mark_point(filled=True, size=60).encode(x="share:Q")).properties(width=380)


@of_tensors
def p_hat(
    gradients: Tensor,
    direction: Tensor,
    *,
    gamma: float = 0.1,
    floor: float = 0.0,
    biases: Tensor | None = None,
    sign: int | None = None,
) -> ConeShare:
    """The share of gradients (rows, dim) in the cone of ``direction`` (dim,), at least ``floor`` long; with ``biases``
    (rows,) and a ``sign``, among the rows whose bias has that sign."""
    check_width(gamma)
    number("floor", floor, least=0)
    if gradients.ndim != 2 or direction.shape != gradients.shape[1:]:
        shapes = f"{tuple(gradients.shape)} and {tuple(direction.shape)}"
        raise ValueError(f"gradients are (rows, dim) and a direction (dim,), not {shapes}")
    all_finite("gradients", gradients)
    if (biases is None) != (sign is None):
        raise ValueError("a bias sign needs biases, and biases are read for a sign: give both or neither")
    if biases is not None:
        one_of("sign", sign, (-1, 1))
        gradients = gradients[biases.sign() == sign]
    if not len(gradients):
        raise ValueError("no row is left: a share needs at least one")
    norms = torch.linalg.vector_norm(gradients, dim=1)
    long = gradients[(norms > 0) & (norms >= floor)]
    inside = int((cosines(long, direction[None]).abs() > 1 - gamma).sum())
    return ConeShare(inside, len(gradients), gamma, floor)


@full_precision()
def cosines_or_zero(vectors: Tensor, directions: Tensor) -> Tensor:
    """cos of vectors (rows, dim) with directions (directions, dim): (rows, directions), 0 for a vector of zero."""
    alive = vectors.abs().amax(1) > 0
    found = vectors.new_zeros(len(vectors), len(directions))
    found[alive] = cosines(vectors[alive], directions)
    return found


@dataclass(frozen=True)
class Cone:
    """A direction (dim,) of unit norm whose largest entry is positive, the rows that share it, and each one's sign."""

    direction: Tensor
    members: Tensor  # (members,) indices of rows
    signs: Tensor  # (members,) ±1
    cosines: Tensor  # (members,) |cos|


@full_precision()
def cone_cover(
    vectors: Tensor, *, gamma: float = 0.1, most: int = 16, least: int = 1, centres: int = 2048
) -> list[Cone]:
    """Cones that hold the vectors (rows, dim), none of them zero, found one after the other among those left.

    A row counts the more for a centre the nearer it is, and the centre, at first one of the ``centres`` longest rows,
    moves to the weighted mean of its cone: it stands where rows are dense, not where a cone holds the most of a wide
    spread. At most ``most`` cones with at least ``least`` rows each.
    """
    check_width(gamma)
    whole("most", most, 1)
    whole("least", least, 1)
    units = unit_rows(vectors)
    order = torch.linalg.vector_norm(vectors, dim=1).argsort(descending=True, stable=True)[:centres]
    nearness = ((units[order] @ units.T).abs() - (1 - gamma)).clamp_min(0)  # (centres, rows)
    left = torch.ones(len(units), dtype=torch.bool, device=units.device)
    cones: list[Cone] = []
    while len(cones) < most:
        enough = ((nearness > 0) & left).sum(1) >= least
        if not bool(enough.any()):
            break
        axis = units[order[int(((nearness @ left.to(nearness)) * enough).argmax())]]
        for _ in range(10):
            along = units @ axis
            weight = (along.abs() - (1 - gamma)).clamp_min(0) * left * along.sign()
            total = weight @ units
            axis = total / torch.linalg.vector_norm(total)
        axis = axis * axis[axis.abs().argmax()].sign()
        along = units @ axis
        members = ((along.abs() > 1 - gamma) & left).nonzero().squeeze(1)
        left[members] = False
        if len(members) >= least:
            cones.append(Cone(axis, members, along[members].sign(), along[members].abs().clamp(max=1)))
    return cones
