"""Which neurons of a layer specialise on one feature, which mix several, and whom would pruning hit?

Give it weights and candidate directions: known features, class means, or the rows of a linear probe. All alignments are
|cos|, so they do not change with the scale of a neuron.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, chart, plain
from assay.methods._arrays import of_tensors
from assay.methods._checks import all_finite, number


def _check_one(what: str, values: Tensor, axes: int) -> None:
    """Refuse one layer that is not finite, since a flag cannot be NaN. In a stack over seeds one may have diverged and
    the others not: whoever counts over a stack says which of them count."""
    if values.ndim == axes:
        all_finite(what, values)


@of_tensors
def alignments(weights: Tensor, directions: Tensor) -> Tensor:
    """|cos(w_i, M_j)|: (..., neurons, dim) × (..., features, dim) → (..., neurons, features). A neuron of norm zero
    points nowhere: its row is 0, with a warning; one that is not finite has the row NaN."""
    weights, directions = weights.detach(), directions.detach().to(weights)
    all_finite("directions", directions)
    scale = weights.abs().amax(-1, keepdim=True)
    if bool((scale == 0).any()):
        warnings.warn(f"{int((scale == 0).sum())} neurons have norm zero and align with nothing", stacklevel=3)
    # Dividing by the largest entry first keeps the squares of very small weights from underflowing.
    rows = weights / torch.where(scale == 0, 1, scale)
    norms = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    lengths = torch.linalg.vector_norm(directions, dim=-1)
    if bool((lengths == 0).any()):
        raise ValueError("a direction of norm zero is no direction")
    cosines = (rows @ directions.mT).abs() / lengths.unsqueeze(-2)
    return torch.where(scale == 0, 0, cosines / torch.where(scale == 0, 1, norms)).clamp(max=1)


@of_tensors
def lucky_neurons(cosines: Tensor, *, least: float = 0.25, most: float = 0.05, ratio: float = 5.0) -> Tensor:
    """Neurons with one feature: the largest cos² is at least ``least``, and the second at most ``most`` or ``ratio``
    times smaller: (..., neurons, features) → (..., neurons), boolean."""
    _check_one("cosines", cosines, 2)
    top = cosines.square().topk(2, dim=-1).values
    first, second = top[..., 0], top[..., 1]
    return (first >= least) & ((second <= most) | (first >= ratio * second))


@of_tensors
def mixed_neurons(cosines: Tensor, *, least: float = 0.1) -> Tensor:
    """Neurons with two features or more whose cos² is at least ``least``: (..., neurons), boolean."""
    _check_one("cosines", cosines, 2)
    return (cosines.square() >= least).sum(-1) >= 2


@of_tensors
def aligned_counts(cosines: Tensor, *, threshold: float = 0.3) -> Tensor:
    """Per feature, the number of neurons with |cos| at least ``threshold``: (..., features)."""
    _check_one("cosines", cosines, 2)
    return (cosines >= threshold).sum(-2)


@of_tensors
def smallest_neurons(norms: Tensor, alpha: float) -> Tensor:
    """The round(α · neurons) neurons of smallest norm, ties by index: (..., neurons) → (..., neurons), boolean."""
    number("alpha", alpha, least=0, below=1)
    _check_one("norms", norms, 1)
    count = round(alpha * norms.shape[-1])
    if count and count == norms.shape[-1]:
        raise ValueError(f"α = {alpha} prunes all {count} neurons")
    order = norms.argsort(dim=-1, stable=True)
    return torch.zeros_like(norms, dtype=torch.bool).scatter_(-1, order[..., :count], True)


@dataclass(frozen=True)
class FeatureRow:
    """One feature's line of the report."""

    feature: int
    group: str
    frequency: float | None
    aligned: int  # neurons with |cos| ≥ 0.3
    best: float  # largest |cos|
    lucky: int
    norm: float  # mean norm of the neurons whose strongest feature this is; NaN without any


@dataclass(frozen=True, repr=False)
class Specialisation(Report):
    """``cosines`` (neurons, features) for a heat map, the kinds of neurons, a line per feature, and per group the share
    of the ``pruned`` neurons, those that pruning at ``alpha`` would hide, beside the share of all neurons that are of
    that group. Where α · neurons rounds to 0 nothing is pruned, and the pruned shares are NaN.

    Neurons that align with no direction at all, those of norm zero above all, belong to no group and enter no share:
    there are ``unaligned`` of them, ``pruned_unaligned`` among the pruned."""

    cosines: Tensor
    lucky: Tensor
    mixed: Tensor
    rows: tuple[FeatureRow, ...]
    alpha: float
    pruned: int
    pruned_share: dict[str, float]
    neuron_share: dict[str, float]
    unaligned: int = 0
    pruned_unaligned: int = 0

    def favours(self, group: str) -> bool:
        """Whether magnitude pruning would hit this group's neurons more often than chance: if it does not hit the rare
        group, it cannot help it. Refused where no neuron of any group would be pruned."""
        if self.pruned == self.pruned_unaligned:
            whom = f"none of {len(self.lucky)} neurons" if not self.pruned else "only neurons that align with nothing"
            raise ValueError(f"pruning at {self.alpha:g} hits {whom}, so it favours no group")
        return self.pruned_share[group] > self.neuron_share[group]

    def table(self) -> list[dict[str, Any]]:
        """A row per feature."""
        return [plain(row) for row in self.rows]

    def figure(self) -> Any:
        """|cos| of the neurons, strongest feature first, with every feature."""
        order = (self.cosines.argmax(1) - 0.5 * self.cosines.amax(1)).argsort().tolist()[:200]
        cells = [
            {"neuron": place, "feature": feature, "cosine": float(self.cosines[neuron, feature])}
            for place, neuron in enumerate(order)
            for feature in range(self.cosines.shape[1])
        ]
        drawn = chart(cells).mark_rect().encode(x="neuron:O", y="feature:O", color="cosine:Q")
        return drawn.encode(x={"field": "neuron", "type": "ordinal", "axis": None}).properties(width=420)

    def __repr__(self) -> str:
        lines = [f"{'feature':>8}{'group':>12}{'frequency':>11}{'aligned':>9}{'best':>7}{'lucky':>7}{'norm':>9}"]
        for row in self.rows:
            frequency = "" if row.frequency is None else f"{row.frequency:.4g}"
            lines.append(
                f"{row.feature:>8}{row.group:>12}{frequency:>11}{row.aligned:>9}{row.best:>7.2f}{row.lucky:>7}"
                f"{row.norm:>9.3g}"
            )
        lines.append(f"{int(self.lucky.sum())} lucky and {int(self.mixed.sum())} mixed of {len(self.lucky)} neurons")
        if not self.pruned:
            lines.append(f"pruning at {self.alpha:g} would hit none of them")
        if self.unaligned:
            hit = f"; pruning at {self.alpha:g} would hit {self.pruned_unaligned} of these" if self.pruned else ""
            lines.append(f"{self.unaligned} align with nothing and belong to no group{hit}")
        if self.pruned == self.pruned_unaligned:
            return "\n".join(lines)
        everyone = "all that align with something" if self.unaligned else "all"
        for group, share in self.pruned_share.items():
            lines.append(
                f"{group}: {share:.0%} of the neurons that pruning at {self.alpha:g} would hit, "
                f"{self.neuron_share[group]:.0%} of {everyone}"
            )
        return "\n".join(lines)


@of_tensors
def specialisation(
    weights: Tensor,
    directions: Tensor,
    *,
    groups: Sequence[str] | None = None,
    frequencies: Sequence[float] | None = None,
    alpha: float = 0.125,
) -> Specialisation:
    """Report on one layer: ``weights`` (neurons, dim) against ``directions`` (features, dim).

    ``groups`` names each feature's group (head and tail, say), ``frequencies`` how often it occurs. A neuron belongs to
    the group of its strongest feature, one that aligns with nothing to none.
    """
    if weights.ndim != 2 or directions.ndim != 2 or len(directions) < 2:
        raise ValueError("one layer (neurons, dim) and at least two directions (features, dim) are needed")
    names = list(groups) if groups is not None else ["all"] * len(directions)
    if len(names) != len(directions) or (frequencies is not None and len(frequencies) != len(directions)):
        raise ValueError(f"groups and frequencies need one entry for each of {len(directions)} directions")
    all_finite("weights", weights)
    all_finite("directions", directions)
    cosines = alignments(weights, directions)
    lucky, mixed = lucky_neurons(cosines), mixed_neurons(cosines)
    norms = torch.linalg.vector_norm(weights.detach(), dim=-1)
    pruned = smallest_neurons(norms, alpha)
    # The largest entry of a row of zeros is its first, which would make a dead neuron a specialist of feature 0.
    aligned = cosines.amax(-1) > 0
    strongest = torch.where(aligned, cosines.argmax(-1), -1)
    rows = tuple(
        FeatureRow(
            j,
            names[j],
            None if frequencies is None else float(frequencies[j]),
            int(aligned_counts(cosines)[j]),
            float(cosines[:, j].max()),
            int((lucky & (strongest == j)).sum()),
            float(norms[strongest == j].mean()),
        )
        for j in range(len(directions))
    )
    member = {
        name: torch.tensor([group == name for group in names]).to(strongest.device) for name in dict.fromkeys(names)
    }
    return Specialisation(
        cosines,
        lucky,
        mixed,
        rows,
        alpha,
        int(pruned.sum()),
        {name: float(inside[strongest[pruned & aligned]].double().mean()) for name, inside in member.items()},
        {name: float(inside[strongest[aligned]].double().mean()) for name, inside in member.items()},
        int((~aligned).sum()),
        int((pruned & ~aligned).sum()),
    )
