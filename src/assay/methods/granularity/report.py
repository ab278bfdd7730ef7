"""What can be said of finer labels before anything is trained: what speaks against them, and not what they gain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, bars
from assay.methods._arrays import of_tensors
from assay.methods._checks import all_finite, number, whole

from .hierarchies import LabelHierarchy


@dataclass(frozen=True, repr=False)
class GranularityReport(Report):
    """``purity`` and ``conditional_entropy`` (bits of the coarse label that the fine one leaves open) tell alignment;
    ``consistency`` is the share of a sample's nearest neighbours with its own fine label, ``chance`` its mean over
    shuffles of the fine labels within coarse classes. ``advice`` is ``unlikely`` (to gain
    anything), ``risky`` (some classes mix coarse ones), ``harmful`` to frozen features (the labels mix them like random
    ones), or ``undecided``: nothing speaks against the labels, and whether they gain only a transfer can tell."""

    name: str
    classes: int
    coarse_classes: int
    smallest: int
    median: float
    purity: float
    conditional_entropy: float
    coarse_entropy: float
    consistency: float | None
    chance: float | None
    warnings: tuple[str, ...]
    advice: str

    @property
    def open_share(self) -> float:
        """H(coarse | fine)/H(coarse): 0 for aligned labels, about 1 for random ones."""
        return self.conditional_entropy / self.coarse_entropy if self.coarse_entropy else 0.0

    @property
    def lift(self) -> float | None:
        """How far consistency goes from chance to certainty; 0 for random splits."""
        if self.consistency is None or self.chance is None or self.chance >= 1:
            return None
        return (self.consistency - self.chance) / (1 - self.chance)

    def headline(self) -> str:
        return f"{self.name}: {self.classes} fine classes for {self.coarse_classes} coarse ones: {self.advice}"

    def table(self) -> list[dict[str, Any]]:
        """One row with all numbers; reports of several label sets make a table together."""
        return [
            {
                "labels": self.name,
                "classes": self.classes,
                "smallest": self.smallest,
                "median": self.median,
                "purity": self.purity,
                "open_share": self.open_share,
                "lift": self.lift,
                "advice": self.advice,
            }
        ]

    def __repr__(self) -> str:
        lines = [self.headline(), f"  samples per class: smallest {self.smallest}, median {self.median:g}"]
        lines.append(f"  purity {self.purity:.3f}, H(coarse | fine) {self.conditional_entropy:.3f} bits")
        if self.consistency is not None and self.chance is not None:
            lines.append(f"  neighbours with the same fine label {self.consistency:.3f}, by chance {self.chance:.3f}")
        return "\n".join([*lines, *(f"  warning: {warning}" for warning in self.warnings)])

    def figure(self) -> Any:
        """Purity, what the fine label tells of the coarse one, and what neighbours tell of the fine one."""
        parts = {"purity": self.purity, "coarse label told": 1 - self.open_share, "lift of neighbours": self.lift}
        rows = [{"what": name, "share": value} for name, value in parts.items() if value is not None]
        return bars(rows, "what", "share")


@of_tensors
def granularity_report(
    hierarchy: LabelHierarchy,
    embeddings: Tensor | None = None,
    *,
    neighbours: int = 5,
    least: int = 20,
    least_lift: float = 0.05,
    most_open: float = 0.9,
    rows: int = 5000,
    generator: torch.Generator | None = None,
) -> GranularityReport:
    """Judge fine labels by the rules that the study of label granularity tests: aligned (C9), enough samples per class
    (C12), and more than a random split where embeddings (n, dim) are given. Labels that mix coarse classes are risky;
    harmful are those that do it like random labels: they leave ``most_open`` of the coarse label's entropy open, or
    neighbours agree on them by less than ``least_lift`` above chance. At most ``rows`` samples, drawn with
    ``generator`` (seed 0 when None), enter the neighbour test."""
    whole("neighbours", neighbours, 1)
    whole("least", least, 1)
    number("most_open", most_open, above=0, most=1)
    fine, _, often = hierarchy.pairs
    sizes, coarse_sizes = (_sizes(labels) for labels in (hierarchy.fine, hierarchy.coarse))
    generator = generator or torch.Generator().manual_seed(0)
    consistency, chance = None, None
    if embeddings is not None:
        consistency, chance = _agreement(hierarchy, embeddings, neighbours, rows, generator)
    found = GranularityReport(
        name=hierarchy.name,
        classes=hierarchy.classes,
        coarse_classes=len(coarse_sizes),
        smallest=int(sizes.min()),
        median=float(sizes.double().median()),
        purity=hierarchy.purity,
        conditional_entropy=_conditional_entropy(fine, often),
        coarse_entropy=_conditional_entropy(torch.zeros_like(coarse_sizes), coarse_sizes),
        consistency=consistency,
        chance=chance,
        warnings=(),
        advice="",
    )
    warnings, advice = _judge(found, least, least_lift, most_open)
    return GranularityReport(**{**found.__dict__, "warnings": tuple(warnings), "advice": advice})


def _judge(found: GranularityReport, least: int, least_lift: float, most_open: float) -> tuple[list[str], str]:
    warnings, advice = [], "undecided"
    if found.classes <= found.coarse_classes and found.purity == 1:
        warnings.append("the labels are no finer than the coarse ones")
        advice = "unlikely"
    if found.median < least:
        warnings.append(f"half of the classes have {found.median:g} samples or fewer; {least} or more are advised")
        advice = "unlikely"
    random_split = found.lift is not None and found.lift < least_lift
    if random_split:
        warnings.append("neighbours share fine labels hardly more often than after a random split")
        advice = "unlikely"
    if found.purity < 1:
        warnings.append(f"{1 - found.purity:.1%} of the samples share a fine class with another coarse class")
        advice = "harmful" if random_split or found.open_share >= most_open else "risky"
    return warnings, advice


def _sizes(labels: Tensor) -> Tensor:
    """Samples of every class that has any."""
    sizes = torch.bincount(labels)
    return sizes[sizes > 0]


def _conditional_entropy(fine: Tensor, often: Tensor) -> float:
    """H(coarse | fine) in bits, from the fine class (pairs,) of every pair that occurs and the pair's samples."""
    joint = often.double() / often.sum()
    given = joint / joint.new_zeros(int(fine.max()) + 1).index_add_(0, fine, joint)[fine]
    return abs(float((joint * given.log()).sum())) / math.log(2)


def _agreement(
    hierarchy: LabelHierarchy, embeddings: Tensor, neighbours: int, rows: int, generator: torch.Generator
) -> tuple[float, float]:
    """How often neighbours share a fine label: as it is, and in the mean over shuffles within coarse classes."""
    if embeddings.ndim != 2 or len(embeddings) != len(hierarchy.fine):
        raise ValueError(f"embeddings are (n, dim) with n = {len(hierarchy.fine)}, not {tuple(embeddings.shape)}")
    all_finite("embeddings", embeddings)
    kept = torch.randperm(len(embeddings), generator=generator)[:rows]
    # Distances come from products, which lose them in single precision where the points lie far from the origin.
    points = embeddings[kept.to(embeddings.device)].detach().double()
    points = points - points.mean(0)
    if len(points) <= neighbours:
        raise ValueError(f"{neighbours} neighbours need more than {len(points)} samples")
    fine, coarse = hierarchy.fine[kept], hierarchy.coarse[kept]
    nearest = _nearest(points, neighbours).cpu()
    consistency = (fine[nearest] == fine.unsqueeze(1)).double().mean()
    return float(consistency), _chance(LabelHierarchy("sample", fine, coarse), coarse[nearest])


def _chance(sample: LabelHierarchy, beside: Tensor) -> float:
    """The mean agreement with neighbours of coarse classes ``beside`` (n, neighbours) over all shuffles of the fine
    labels within coarse classes: Σ_f p(f | y) p(f | y') for classes y ≠ y', and without replacement within one."""
    classes, places = torch.unique(sample.coarse, return_inverse=True)
    fine, coarse, often = sample.pairs  # in ascending order of the fine class
    columns, rows = torch.searchsorted(classes, coarse), torch.unique_consecutive(fine, return_inverse=True)[1]
    together = torch.zeros(len(classes), len(classes), dtype=torch.float64)  # Σ_f n_fy n_fy'
    for start in range(0, int(rows.max()) + 1, 1024):
        inside = (rows >= start) & (rows < start + 1024)
        counts = torch.zeros(1024, len(classes), dtype=torch.float64)
        counts[rows[inside] - start, columns[inside]] = often[inside].double()
        together += counts.T @ counts
    sizes = torch.bincount(places).double()
    pairs = torch.outer(sizes, sizes)
    own = torch.arange(len(classes))
    together[own, own] -= sizes
    pairs[own, own] -= sizes
    table = together / pairs.clamp_min(1)  # a class of one sample is nobody's neighbour within
    return float(table[places.unsqueeze(1), torch.searchsorted(classes, beside)].mean())


def _nearest(points: Tensor, neighbours: int) -> Tensor:
    """The indices of every row's nearest other rows: (n, neighbours)."""
    found = []
    for start in range(0, len(points), 1000):
        distances = torch.cdist(points[start : start + 1000], points)
        inside = torch.arange(len(distances), device=points.device)
        distances[inside, start + inside] = torch.inf
        found.append(distances.topk(neighbours, largest=False).indices)
    return torch.cat(found)
