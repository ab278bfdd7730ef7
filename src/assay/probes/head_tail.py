"""How good are frozen features for frequent and for rare classes? A linear probe and its head–tail gap.

Classes are ranked by how often they occurred in *pretraining*; the probe itself should be trained on balanced labels,
so that a gap speaks of the features and not of the head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, chart
from assay.methods._arrays import of_tensors
from assay.methods._checks import all_finite
from assay.methods._data import as_classes

from .heads import fit_head
from .intervals import Interval, share_interval, sum_interval


@dataclass(frozen=True, repr=False)
class HeadTail(Report):
    """Accuracies in [0, 1]; ``gap`` is the mean accuracy of the head classes minus that of the tail classes (Δ₂₀)."""

    accuracy: float
    per_class: Tensor
    head: tuple[int, ...]
    tail: tuple[int, ...]
    tested: tuple[int, ...] = ()  # test samples of each class

    @property
    def gap(self) -> float:
        return float(self.per_class[list(self.head)].mean() - self.per_class[list(self.tail)].mean())

    def interval(self) -> Interval:
        """The gap with its 95 % interval over test samples: of these classes and this pretraining, not of others."""
        if not self.tested:
            return Interval(self.gap, math.nan, math.nan, 0)
        each = self._classes()
        weights = {c: 1 / len(self.head) for c in self.head}
        for c in self.tail:
            weights[c] = weights.get(c, 0.0) - 1 / len(self.tail)
        return sum_interval((weight, each[c]) for c, weight in weights.items())

    @property
    def advice(self) -> str:
        """``the head is ahead`` or ``the tail is ahead`` where the interval decides, else ``undecided``."""
        return {1: "the head is ahead", -1: "the tail is ahead"}.get(self.interval().sign, "undecided")

    def _classes(self) -> list[Interval]:
        counts = zip(self.per_class.tolist(), self.tested, strict=True)
        return [share_interval(share * tested, tested) for share, tested in counts]

    def headline(self) -> str:
        found = self.interval()
        within = f" [{found.low:+.3f}, {found.high:+.3f}]: {self.advice}" if math.isfinite(found.low) else ""
        return f"accuracy {self.accuracy:.3f}; head minus tail {self.gap:+.3f}{within}"

    def table(self) -> list[dict[str, Any]]:
        """A row per class."""
        part = {**dict.fromkeys(self.tail, "tail"), **dict.fromkeys(self.head, "head")}
        rows = [
            {"class": place, "accuracy": value, "part": part.get(place, "middle")}
            for place, value in enumerate(self.per_class.tolist())
        ]
        if not self.tested:
            return rows
        return [{**row, "low": at.low, "high": at.high} for row, at in zip(rows, self._classes(), strict=True)]

    def figure(self) -> Any:
        """Accuracy by class with its interval over test samples: the head's classes first, the tail's last."""
        rows, known = self.table(), {*self.head, *self.tail}
        order = [*self.head, *(row["class"] for row in rows if row["class"] not in known), *self.tail]
        place: dict[str, Any] = {"field": "class", "type": "ordinal", "sort": order, "axis": {"labelAngle": 0}}
        place["title"] = "class, the head first and the tail last"
        height = {"field": "accuracy", "type": "quantitative", "scale": {"domain": [0, 1]}, "title": "accuracy"}
        parts = {"domain": ["head", "middle", "tail"], "range": ["#4c78a8", "#bab0ac", "#e45756"]}
        shade = {"field": "part", "type": "nominal", "scale": parts, "title": None}
        base = chart(rows).encode(x=place)
        drawn = base.mark_bar().encode(y=height, color=shade)
        if self.tested:
            drawn += base.mark_rule(strokeWidth=1.5).encode(y={**height, "field": "low"}, y2="high:Q")
        return drawn.properties(width=320, height=220)


def head_and_tail(counts: Sequence[int], share: float = 0.2) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The max(1, round(share · classes)) most and least frequent classes; among equals the lower index is more
    frequent."""
    if len(counts) < 2 or not 0 < share <= 0.5:
        raise ValueError("a gap needs two classes or more and a share in (0, 0.5]")
    ranked = sorted(range(len(counts)), key=lambda c: (-counts[c], c))
    size = max(1, round(share * len(counts)))
    return tuple(ranked[:size]), tuple(ranked[-size:])


@of_tensors
def score_head_tail(predictions: Tensor, labels: Tensor, counts: Sequence[int], *, share: float = 0.2) -> HeadTail:
    """Overall and per-class accuracy and the gap of given predictions. Every class needs a test sample."""
    predictions, labels = as_classes(predictions, len(labels)), as_classes(labels, len(predictions))
    present = torch.bincount(labels, minlength=len(counts))
    if len(present) != len(counts) or bool((present == 0).any()):
        raise ValueError(f"the labels must be those of {len(counts)} classes, each with at least one test sample")
    right = (predictions == labels).double()
    per_class = (
        torch.zeros(len(counts), dtype=torch.double, device=labels.device).index_add_(0, labels, right) / present
    )
    return HeadTail(float(right.mean()), per_class.cpu(), *head_and_tail(counts, share), tuple(present.tolist()))


@of_tensors
def head_tail_probe(
    features: Tensor,
    labels: Tensor,
    test_features: Tensor,
    test_labels: Tensor,
    counts: Sequence[int],
    *,
    decay: float = 1e-3,
    iterations: int = 200,
    share: float = 0.2,
) -> HeadTail:
    """Fit a linear classifier on frozen features (n, dim), then score it on test features.

    Features are standardised by the training ones; a feature that is constant there is left out. Softmax regression
    with ``decay``/2 · ‖weights‖² is convex and is fitted by L-BFGS from zero, so that the result has no seed.
    ``counts`` are the classes' pretraining frequencies.
    """
    all_finite("the training features", torch.as_tensor(features))
    all_finite("the test features", torch.as_tensor(test_features))
    head = fit_head(features, labels, scaling="standardized", penalty=decay / 2, steps=iterations)
    return score_head_tail(head.predict(test_features), test_labels, counts, share=share)
