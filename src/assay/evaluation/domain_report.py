"""What a leave-one-domain-out protocol found: accuracies, paired gains with intervals, and gains above a curve."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay._reports import Report, altair, lines, plain

from .domain_checks import Check

AVERAGE = "average"


@dataclass(frozen=True)
class Outcome:
    """One algorithm, target and seed: the chosen trial and step, the settings that the trial changed, the validation
    accuracy that chose them and the accuracy on the target, which chose nothing. ``checks`` are all looks of the chosen
    training; ``trials`` is the number of trainings that were compared, ``failed`` how many of them diverged."""

    algorithm: str
    target: str
    seed: int
    accuracy: float
    validation: float
    step: int
    settings: Mapping[str, float]
    trials: int
    failed: int
    checks: tuple[Check, ...]


@dataclass(frozen=True, repr=False)
class DomainReport(Report):
    """All outcomes. Means are over seeds; the ``average`` is over targets within a seed."""

    domains: tuple[str, ...]
    algorithms: tuple[str, ...]
    seeds: tuple[int, ...]
    selection: str
    outcomes: tuple[Outcome, ...]

    def table(self) -> list[dict[str, Any]]:
        """A row per algorithm: the mean accuracy on every target and over them, with standard errors over seeds."""
        rows = []
        for algorithm in self.algorithms:
            row: dict[str, Any] = {"algorithm": algorithm}
            for target in (*self.targets, AVERAGE):
                values = self.values(algorithm, target)
                row[target] = float(values.mean())
                row[f"{target} ±"] = float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else math.nan
            rows.append(row)
        return rows

    @property
    def targets(self) -> tuple[str, ...]:
        """The domains that were left out, in order."""
        left_out = {each.target for each in self.outcomes}
        return tuple(domain for domain in self.domains if domain in left_out)

    def values(self, algorithm: str, target: str = AVERAGE) -> np.ndarray:
        """The accuracy of every seed on a target, or over all of them: (seeds,)."""
        if algorithm not in self.algorithms or target not in (*self.targets, AVERAGE):
            raise ValueError(f"there is no outcome of {algorithm!r} on {target!r}")
        found = {(each.target, each.seed): each.accuracy for each in self.outcomes if each.algorithm == algorithm}
        return np.asarray([np.mean([found[each, seed] for each in self._within(target)]) for seed in self.seeds])

    def gains(self, baseline: str, *, level: float = 0.9) -> list[dict[str, Any]]:
        """Differences to a baseline, paired by seed, with a bootstrap interval over seeds (none for a single one).

        ``above_curve`` is the stricter comparison: with the best accuracy that the baseline's own trainings showed at
        any look with at least the same validation accuracy, as if one had stopped earlier. It is None where the
        baseline never reached that."""
        rows = []
        for algorithm, target in itertools.product(self.algorithms, (*self.targets, AVERAGE)):
            if algorithm == baseline:
                continue
            apart = self.values(algorithm, target) - self.values(baseline, target)
            low, high = bootstrap(apart, level)
            beyond = [self._above_curve(algorithm, baseline, each) for each in self._within(target)]
            known = [each for each in beyond if each is not None]
            rows.append(
                {
                    "algorithm": algorithm,
                    "target": target,
                    "gain": float(apart.mean()),
                    "low": low,
                    "high": high,
                    "above_curve": float(np.mean(known)) if len(known) == len(beyond) else None,
                }
            )
        return rows

    def _within(self, target: str) -> tuple[str, ...]:
        return self.targets if target == AVERAGE else (target,)

    def _above_curve(self, algorithm: str, baseline: str, target: str) -> float | None:
        found = {(each.algorithm, each.seed): each for each in self.outcomes if each.target == target}
        apart = []
        for seed in self.seeds:
            ours, theirs = found[algorithm, seed], found[baseline, seed]
            at = [look.accuracies[target] for look in theirs.checks if look.validation >= ours.validation]
            if not at:
                return None
            apart.append(ours.accuracy - max(at))
        return float(np.mean(apart))

    def __repr__(self) -> str:
        head = f"accuracy on the domain left out, {len(self.seeds)} seeds, chosen by {self.selection}"
        columns = ["algorithm", *self.targets, AVERAGE, f"{AVERAGE} ±"]
        return f"{head}\n{lines(self.table(), columns)}"

    def figure(self, baseline: str | None = None) -> Any:
        """Gains over a baseline (the first algorithm unless named) per target, with their intervals; with a single
        algorithm its accuracies."""
        alt = altair("the figure of a protocol")
        first = baseline or self.algorithms[0]
        if len(self.algorithms) == 1:
            rows = [{"target": t, "accuracy": self.table()[0][t]} for t in (*self.targets, AVERAGE)]
            chart = alt.Chart(alt.Data(values=rows)).mark_bar()
            return chart.encode(x=alt.X("accuracy:Q"), y=alt.Y("target:N", sort=None, title=None))
        rows = [{**plain(row), "zero": 0} for row in self.gains(first)]
        base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("target:N", sort=None, title=None))
        points = base.mark_point(filled=True, size=70).encode(x=alt.X("gain:Q", title=f"gain over {first}"))
        bars = base.mark_rule().encode(x="low:Q", x2="high:Q")
        zero = base.mark_rule(strokeDash=[4, 4], color="grey").encode(x="zero:Q")
        return (
            alt.layer(zero, bars, points).properties(width=360).facet(row=alt.Row("algorithm:N", sort=None, title=None))
        )


def bootstrap(values: Sequence[float] | np.ndarray, level: float) -> tuple[float, float]:
    """The middle ``level`` of means over resampled values: all resamples of up to six, else 10,000 of them."""
    found = np.asarray(values, dtype=float)
    if len(found) < 2:
        return math.nan, math.nan
    if len(found) <= 6:
        means = np.asarray(
            [found[list(each)].mean() for each in itertools.product(range(len(found)), repeat=len(found))]
        )
    else:
        means = np.random.default_rng(0).choice(found, (10_000, len(found))).mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(low), float(high)
