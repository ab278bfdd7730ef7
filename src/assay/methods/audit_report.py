"""What a split audit found: both ways of training on new tasks, and whether their difference decides anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from assay._reports import Report, bars, chart
from assay.probes.intervals import Interval, mean_interval

from .meta_tasks import mean

MEASURED = (
    "meta_train_loss",
    "test_loss",
    "test_accuracy",
    "adapted_loss",
    "adapted_accuracy",
    "support_gain",
    "held_out_gain",
    "amplification",
)
PER_TASK = ("amplifications", "adapted_accuracies")


@dataclass(frozen=True)
class AuditRow:
    """One way of training, measured on new tasks. ``support_gain`` and ``held_out_gain`` are mean margin gains from the
    inner steps; ``amplifications`` are their differences, task by task, and ``amplification`` is the mean of these.
    ``adapted_accuracies`` are those after adaptation, task by task."""

    split: str
    meta_train_loss: float
    test_loss: float
    test_accuracy: float
    adapted_loss: float
    adapted_accuracy: float
    support_gain: float
    held_out_gain: float
    amplifications: tuple[float, ...]
    adapted_accuracies: tuple[float, ...] = ()

    @property
    def amplification(self) -> float:
        return mean(self.amplifications)

    @classmethod
    def over(cls, rows: Sequence[AuditRow]) -> AuditRow:
        """The mean over seeds, with the tasks of all of them."""
        found: dict[str, Any] = {name: mean(getattr(row, name) for row in rows) for name in MEASURED[:-1]}
        found |= {name: tuple(chain.from_iterable(getattr(row, name) for row in rows)) for name in PER_TASK}
        return cls(rows[0].split, **found)


@dataclass(frozen=True, repr=False)
class AuditReport(Report):
    """``near_zero`` is the meta-training loss below which a method counts as fitted, ``tie`` the difference in accuracy
    that is none. With several seeds the two rows are means over them, and ``by_seed`` has each seed's pair of rows,
    with a split and without."""

    with_split: AuditRow
    without_split: AuditRow
    near_zero: float = 0.1
    tie: float = 0.02
    by_seed: tuple[tuple[AuditRow, AuditRow], ...] = ()

    @classmethod
    def over(cls, pairs: Sequence[tuple[AuditRow, AuditRow]]) -> AuditReport:
        """The report of one seed or more."""
        ours, theirs = (AuditRow.over(rows) for rows in zip(*pairs, strict=True))
        return cls(ours, theirs, by_seed=tuple(pairs))

    @property
    def seeds(self) -> int:
        return max(1, len(self.by_seed))

    def difference(self, name: str) -> Interval:
        """Without a split minus with one, of any quantity in the table, with its interval over the seeds, which both
        ways share; without an interval below three seeds."""
        pairs = self.by_seed or ((self.with_split, self.without_split),)
        return mean_interval(getattr(theirs, name) - getattr(ours, name) for ours, theirs in pairs)

    @property
    def apart(self) -> Interval:
        """By how much more the inner steps gain on what they adapted to without a split: with its interval over seeds,
        or, for one seed, over the new tasks, which are the same for both."""
        return self.difference("amplification") if self.seeds > 1 else self._over_tasks("amplifications")

    @property
    def worse(self) -> Interval:
        """How much accuracy on new tasks training without a split costs: over seeds, or over the tasks of the one."""
        found = self.difference("adapted_accuracy") if self.seeds > 1 else self._over_tasks("adapted_accuracies")
        return Interval(-found.estimate, -found.high, -found.low, found.count)

    def _over_tasks(self, name: str) -> Interval:
        ours, theirs = getattr(self.with_split, name), getattr(self.without_split, name)
        return mean_interval(other - own for own, other in zip(ours, theirs, strict=True))

    @property
    def memorises(self) -> bool:
        """Without a split the training loss is near zero, the inner steps gain more on what they adapted to than with
        one, and new tasks are served worse. With several seeds the intervals over them must say all three; with one,
        the gains differ by two standard errors over its tasks and the mean accuracies by more than ``tie``."""
        ours, theirs = self.with_split, self.without_split
        if self.seeds > 1:
            losses = mean_interval(row.meta_train_loss for _, row in self.by_seed)
            fitted = losses.compared(self.near_zero) == "below"
            return fitted and self.apart.sign > 0 and self.worse.compared(self.tie) == "above"
        apart = torch.tensor(theirs.amplifications) - torch.tensor(ours.amplifications)
        return (
            theirs.meta_train_loss < self.near_zero
            and float(apart.mean()) > 2 * float(apart.std()) / len(apart) ** 0.5
            and ours.adapted_accuracy - theirs.adapted_accuracy > self.tie
        )

    @property
    def advice(self) -> str:
        """``memorises``; ``does not`` where the interval of what new tasks lose lies below ``tie``; else
        ``undecided``."""
        if self.memorises:
            return "memorises"
        return "does not" if self.worse.compared(self.tie) == "below" else "undecided"

    def headline(self) -> str:
        word = {"undecided": "may memorise or not: undecided"}.get(self.advice, self.advice)
        over = f"{self.seeds} seeds" if self.seeds > 1 else "the tasks of one seed"
        return f"without a split the inner loop {word}; amplification apart by {self.apart} over {over}"

    def table(self) -> list[dict[str, Any]]:
        """A row per quantity, with a split and without; with three seeds or more also their difference."""
        rows = []
        for name in MEASURED:
            ways = {"with split": getattr(self.with_split, name), "without": getattr(self.without_split, name)}
            found = self.difference(name)
            more = {"difference": found.estimate, "low": found.low, "high": found.high} if self.seeds > 2 else {}
            rows.append({"what": name.replace("_", " "), **ways, **more})
        return rows

    def figure(self) -> Any:
        """Margin gains by adaptation on the samples adapted to and on held-out ones, and accuracy on new tasks; with
        three seeds or more, intervals over them."""
        gains = {"support_gain": "adapted to", "held_out_gain": "held out"}
        accuracy = {"test_accuracy": "before adapting", "adapted_accuracy": "after"}
        return self._panel(gains, "gain in margin by adapting") | self._panel(accuracy, "accuracy on new tasks")

    def _panel(self, names: Mapping[str, str], title: str) -> Any:
        rows = []
        for place, way in enumerate(("with split", "without")):
            pooled = (self.with_split, self.without_split)[place]
            for name, shown in names.items():
                found = mean_interval(getattr(pair[place], name) for pair in self.by_seed)
                row = {"what": shown, "mean": getattr(pooled, name), "training": way}
                rows.append({**row, "low": found.low, "high": found.high})
        drawn = bars(rows, "what", "mean", "training", mean=title)
        if self.seeds > 2:
            order = {"sort": list(names.values()), "title": None}
            ends = (
                chart(rows)
                .mark_rule(strokeWidth=1.5)
                .encode(
                    y={"field": "what", "type": "nominal", **order},
                    yOffset={"field": "training", "type": "nominal"},
                    x={"field": "low", "type": "quantitative"},
                    x2="high:Q",
                )
            )
            drawn += ends
        return drawn.properties(width=230)
