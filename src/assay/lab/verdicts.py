"""Judging a measured quantity against a criterion: intervals over seeds and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from assay.probes.intervals import clopper_pearson

from .intervals import Counted, Sample, Scale
from .regions import Region, written

Verdict = Literal["holds", "fails", "undecided", "not run"]
LEAST_SEEDS = 3
CONFIDENCE = 0.95
BUDGET = 200  # seeds beyond which a claim is called not decidable here


@dataclass(frozen=True, repr=False)
class Judgement:
    """What a claim's function returns: the verdict with the numbers behind it.

    ``method`` says how it was reached: ``student`` (an interval over seeds), ``right or wrong`` (the exact interval of
    a share), ``equal`` (all seeds gave one number), ``every`` (no row may miss) or ``exact`` (a number without seeds).
    ``met`` counts the seeds that meet the criterion by themselves, ``adjusted`` is ``p`` among all claims of the study
    (Holm), ``by_seed`` has each seed's own number, of several the worst.
    """

    verdict: Verdict
    criterion: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seeds: int = 0
    reason: str = ""
    region: Region | None = None
    error: str = ""  # set where the claim's own code is broken: what happened, file and line
    method: str = ""
    met: int | None = None
    adjusted: float = math.nan
    note: str = ""
    sample: Sample | None = field(default=None, compare=False)
    known: Mapping[str, Any] = field(default_factory=dict, compare=False)  # of one that was read back
    confidence: float = CONFIDENCE
    by_seed: tuple[float, ...] = field(default=(), compare=False)

    @cached_property
    def p(self) -> float:
        """The least error at which the verdict would be given."""
        if self.sample is None or self.region is None:
            return float(self.known.get("p", math.nan))
        return p_value(self.sample, self.region)

    @cached_property
    def needed(self) -> int | None:
        """About how many seeds would decide an undecided one; more than BUDGET where no reasonable number does."""
        if self.sample is None or self.region is None or self.verdict != "undecided" or self.reason:
            return self.known.get("needed")
        return seeds_needed(self.sample, self.region, self.confidence)

    @property
    def stands(self) -> bool:
        """Whether the verdict is given among all claims of the study too; what has no error to adjust does."""
        return not self.adjusted > 1 - self.confidence

    @property
    def share_interval(self) -> tuple[float, float]:
        """The share of all seeds that meet the criterion, at 95 %, given those that did here; where all or none did,
        the interval has one end only, and all of the error is that end's."""
        if self.met is None or not self.seeds:
            return math.nan, math.nan
        one_sided = self.met in (0, self.seeds)
        return clopper_pearson(self.met, self.seeds, 2 * CONFIDENCE - 1 if one_sided else CONFIDENCE)

    @property
    def margin(self) -> float:
        """How far the estimate is from the edge of the criterion, in reaches of its interval towards that edge: 1 is
        just decided."""
        if self.region is None or not math.isfinite(self.estimate) or self.method not in ("student", "right or wrong"):
            return math.nan
        edges = []
        for edge in (self.region.low, self.region.high):
            reach = self.high - self.estimate if edge > self.estimate else self.estimate - self.low
            if math.isfinite(edge) and reach > 0:
                edges.append(abs(edge - self.estimate) / reach)
        return min(edges, default=math.nan)

    @property
    def decided_by(self) -> str:
        """What decided it, or what would."""
        if "decided_by" in self.known:
            return str(self.known["decided_by"])
        if self.verdict == "undecided":
            if self.needed is None or self.reason:
                return self.reason
            if self.needed > BUDGET:
                return f"not decidable here: more than {BUDGET} seeds at this spread"
            return f"about {self.needed} seeds would decide it"
        if self.method in ("every", "equal") and self.met is not None:
            return "; ".join(part for part in (self._seeds_that_meet, self.reason) if part)
        if math.isfinite(self.margin) and self.verdict in ("holds", "fails"):
            far = f"{self.margin:.1f}" if self.margin < 100 else "over 100"
            alone = "" if self.stands else f"; alone, not among all claims (Holm {self.adjusted:.2g})"
            return f"margin {far} × the interval's reach{alone}"
        return self.reason

    @property
    def _seeds_that_meet(self) -> str:
        low, high = self.share_interval
        bound = f"at least {low:.2f}" if self.met == self.seeds else f"{low:.2f} to {high:.2f}" if self.met else ""
        bound = bound or f"at most {high:.2f}"
        return f"{self.met} of {self.seeds} seeds, {bound} of all"

    def __repr__(self) -> str:
        measured = "" if math.isnan(self.estimate) else f"{self.estimate:.4g}"
        measured += "" if math.isnan(self.low) else f" [{self.low:.4g}, {self.high:.4g}]"
        seeds = f"{self.seeds} seeds" if self.seeds else ""
        parts = (self.verdict, self.criterion, measured, seeds, self.reason, self.error)
        return f"<{'; '.join(part for part in parts if part)}>"


_CONFIDENCE: ContextVar[float] = ContextVar("confidence", default=CONFIDENCE)


@contextmanager
def looked(times: int) -> Iterator[None]:
    """Judge data that were looked at so many times while seeds were added: each look costs its share of the error."""
    token = _CONFIDENCE.set(1 - (1 - CONFIDENCE) / times)
    try:
        yield
    finally:
        _CONFIDENCE.reset(token)


def over_seeds(
    values: np.ndarray[Any, Any],
    region: Region,
    *,
    what: str = "",
    scale: Scale = "plain",
    counted: Counted | None = None,
    target: float | None = None,
) -> Judgement:
    """Holds when the whole interval of the mean meets the criterion, fails when all of it misses. A seed without a
    finite value has the worst one, and the mean with it. ``target`` is the value that a claim of equality is about."""
    criterion = f"{what} {region.text()}".strip()
    count, finite = len(values), np.isfinite(values)
    by_seed = tuple(map(float, values))
    met = sum(region.has(float(value)) for value in values)
    if count < LEAST_SEEDS:
        reason = f"{count} seeds, and a verdict needs {LEAST_SEEDS}"
        estimate = float(values[finite].mean()) if finite.any() else math.nan
        return Judgement("undecided", criterion, estimate, seeds=count, reason=reason, region=region, by_seed=by_seed)
    if not finite.all():
        lost = count - int(finite.sum())
        reason = f"{lost} of {count} seeds have no finite value, which counts as the worst"
        estimate = float(values[finite].mean()) if finite.any() else math.nan
        return Judgement(
            "fails", criterion, estimate, seeds=count, reason=reason, region=region, met=met, by_seed=by_seed
        )
    sample = Sample(values, scale, counted)
    if sample.all_equal:
        value = sample.mean
        verdict: Verdict = "holds" if region.has(value) else "fails"
        # No interval: one of no width would say that no other seed can differ.
        return Judgement(
            verdict, criterion, value, seeds=count, region=region, method="equal", met=met, by_seed=by_seed
        )
    confidence = _CONFIDENCE.get()
    low, high = sample.interval(confidence)
    return Judgement(
        _decide(low, high, region),
        criterion,
        sample.mean,
        low,
        high,
        count,
        region=region,
        method="right or wrong" if sample.right_or_wrong else "student",
        met=met,
        note=_excludes(target, low, high) if region.contains(low, high) else "",
        sample=sample,
        confidence=confidence,
        by_seed=by_seed,
    )


def _excludes(target: float | None, low: float, high: float) -> str:
    if target is None or low <= target <= high:
        return ""
    return f"the interval excludes {written(target)}: a difference within the margin, and not by chance"


def p_value(sample: Sample, region: Region) -> float:
    """The least error at which the data decide the criterion, one way or the other."""

    def decided(error: float) -> bool:
        return _decide(*sample.interval(1 - error), region) != "undecided"

    low, high = 1e-12, 1.0
    if decided(low):
        return low
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high


def seeds_needed(sample: Sample, region: Region, confidence: float = CONFIDENCE) -> int:
    """About how many seeds would decide the criterion at this mean and spread; BUDGET + 1 where more would."""

    def decided(count: int) -> bool:
        return _decide(*sample.with_seeds(count, confidence), region) != "undecided"

    least, most = sample.count, BUDGET
    if not decided(most):
        return BUDGET + 1
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if decided(middle) else (middle, most)
    return most


def every(
    values: np.ndarray[Any, Any],
    region: Region,
    *,
    seeds: Sequence[int],
    tolerance: float,
    what: str = "",
    where: Callable[[int], str] | None = None,
) -> Judgement:
    """Holds when each value meets the criterion within ``tolerance``; the estimate is the worst, the interval the
    range. ``seeds`` tells whose each value is; ``where`` names a row, for the one that misses most."""
    wide = Region(region.low - tolerance, region.high + tolerance, region.open)
    slack = f" (tolerance {written(tolerance)})" if tolerance else ""
    criterion = f"every {what} {region.text()}{slack}".replace("  ", " ")
    distinct, finite = len(set(seeds)), np.isfinite(values)
    known = np.where(finite, values, 0.0)
    excess = np.where(finite, np.maximum(region.low - known, known - region.high), np.inf)
    row = int(excess.argmax())
    worst = low = high = math.nan
    if finite.all():
        worst, low, high = float(values[row]), float(values.min()), float(values.max())
    farthest: dict[int, tuple[float, float]] = {}
    for seed, far, value in zip(seeds, excess.tolist(), values.tolist(), strict=True):
        farthest[seed] = max(farthest.get(seed, (-math.inf, math.nan)), (far, value))
    by_seed = tuple(farthest[seed][1] for seed in sorted(farthest))
    met = distinct - len({seed for seed, value in zip(seeds, values, strict=True) if not wide.has(float(value))})
    if distinct < LEAST_SEEDS:
        reason = f"{distinct} seeds, and a verdict needs {LEAST_SEEDS}"
        return Judgement("undecided", criterion, worst, low, high, distinct, reason, region, by_seed=by_seed)
    verdict: Verdict = "holds" if met == distinct else "fails"
    missed = "" if verdict == "holds" else where(row) if where else f"seed {seeds[row]}"
    reason = f"missed by {missed}" if missed else ""
    if not finite.all():
        reason = f"a value is not finite ({missed})"
    return Judgement(
        verdict, criterion, worst, low, high, distinct, reason, wide, method="every", met=met, by_seed=by_seed
    )


def exact(value: float, region: Region, *, what: str = "") -> Judgement:
    """A number that no seed has a part in meets the criterion or does not."""
    criterion = f"{what} {region.text()}".strip()
    verdict: Verdict = "holds" if region.has(value) else "fails"
    reason = "" if math.isfinite(value) else "the value is not finite"
    return Judgement(verdict, criterion, value, reason=reason, region=region, method="exact")


def not_run(reason: str, error: str = "") -> Judgement:
    return Judgement("not run", "", reason=reason, error=error)


def _decide(low: float, high: float, region: Region) -> Verdict:
    return "holds" if region.contains(low, high) else "fails" if region.misses(low, high) else "undecided"
