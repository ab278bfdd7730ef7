"""How long after fitting its training data does a model generalise?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from assay._reports import Report, bars
from assay.methods._checks import number


@dataclass(frozen=True, repr=False)
class GrokkingDelay(Report):
    """The first steps at which training and validation accuracy reached the threshold.

    A curve that never does is ``censored``: its step is the last one that was looked at, so that a censored
    ``validation_step`` makes ``gap`` and ``log_ratio`` lower bounds, and a censored ``train_step`` makes them NaN.
    """

    threshold: float
    train_step: int
    validation_step: int
    train_censored: bool
    validation_censored: bool

    @property
    def gap(self) -> float:
        return math.nan if self.train_censored else float(self.validation_step - self.train_step)

    @property
    def log_ratio(self) -> float:
        """log10 of validation over training step; 0 means no delay, 1 ten times as long."""
        if self.train_censored or self.train_step == 0 or self.validation_step == 0:
            return math.nan
        return math.log10(self.validation_step / self.train_step)

    @property
    def at_least(self) -> bool:
        """Whether gap and ratio are lower bounds."""
        return self.validation_censored and not self.train_censored

    def headline(self) -> str:
        if self.train_censored:
            return f"training accuracy never reached {self.threshold:g}"
        more = "at least " if self.at_least else ""
        return f"validation accuracy reached {self.threshold:g} {more}{self.gap:g} steps after training accuracy"

    def table(self) -> list[dict[str, Any]]:
        """A row for training and one for validation."""
        return [
            {"curve": "training", "step": self.train_step, "reached": not self.train_censored},
            {"curve": "validation", "step": self.validation_step, "reached": not self.validation_censored},
        ]

    def figure(self) -> Any:
        """When each of the two reached the threshold."""
        return bars(self.table(), "curve", "step", step=f"first step at {self.threshold:g}")


def grokking_delay(history: Iterable[Sequence[float]], threshold: float = 0.99) -> GrokkingDelay:
    """The delay in ``history``, rows of (step, training accuracy, validation accuracy) in order of the step.

    Accuracies are shares between 0 and 1. A value that is not a number reaches nothing.
    """
    rows = [tuple(row) for row in history]
    if not rows or any(len(row) != 3 for row in rows):
        raise ValueError("the history needs rows of (step, training accuracy, validation accuracy)")
    number("threshold", threshold, above=0, most=1)
    steps = [int(row[0]) for row in rows]
    if any(later <= earlier for earlier, later in itertools.pairwise(steps)):
        raise ValueError("the steps of the history must grow")
    if any(value > 1 for row in rows for value in row[1:]):
        raise ValueError("accuracies are shares between 0 and 1, not percent")
    found = [next((row[0] for row in rows if row[column] >= threshold), None) for column in (1, 2)]
    train, validation = (steps[-1] if step is None else int(step) for step in found)
    return GrokkingDelay(threshold, train, validation, found[0] is None, found[1] is None)
