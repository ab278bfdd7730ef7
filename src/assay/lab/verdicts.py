"""Judging a measured quantity against a criterion: intervals over seeds and verdicts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

Verdict = Literal["holds", "fails", "undecided", "not run"]
LEAST_SEEDS = 3
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Region:
    """The values that meet a criterion: an interval, its ends included or not."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"no value lies between {self.low} and {self.high}")

    def text(self) -> str:
        least, most = (">", "<") if self.open else ("≥", "≤")
        if math.isinf(self.high):
            return f"{least} {_number(self.low)}"
        if math.isinf(self.low):
            return f"{most} {_number(self.high)}"
        left, right = "()" if self.open else "[]"
        return f"in {left}{_number(self.low)}, {_number(self.high)}{right}"

    def has(self, value: float) -> bool:
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def contains(self, low: float, high: float) -> bool:
        return self.has(low) and self.has(high)

    def misses(self, low: float, high: float) -> bool:
        return (high <= self.low or low >= self.high) if self.open else (high < self.low or low > self.high)


@dataclass(frozen=True, repr=False)
class Judgement:
    """What a claim's function returns: the verdict with the numbers behind it."""

    verdict: Verdict
    criterion: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    seeds: int = 0
    reason: str = ""
    region: Region | None = None
    error: str = ""  # set where the claim's own code is broken: what happened, file and line

    def __repr__(self) -> str:
        measured = "" if math.isnan(self.estimate) else f"{self.estimate:.4g}"
        measured += "" if math.isnan(self.low) else f" [{self.low:.4g}, {self.high:.4g}]"
        seeds = f"{self.seeds} seeds" if self.seeds else ""
        parts = (self.verdict, self.criterion, measured, seeds, self.reason, self.error)
        return f"<{'; '.join(part for part in parts if part)}>"


def over_seeds(values: np.ndarray[Any, Any], region: Region, *, what: str = "") -> Judgement:
    """Holds when the whole 95 % Student interval meets the criterion, fails when all of it misses."""
    criterion = f"{what} {region.text()}".strip()
    count = len(values)
    finite = np.isfinite(values)
    if not finite.all():
        reason = f"{count - int(finite.sum())} of {count} seeds have no finite value"
        estimate = float(values[finite].mean()) if finite.any() else math.nan
        return Judgement("undecided", criterion, estimate, seeds=count, reason=reason, region=region)
    estimate = float(values.mean())
    if count < LEAST_SEEDS:
        reason = f"{count} seeds, and a verdict needs {LEAST_SEEDS}"
        return Judgement("undecided", criterion, estimate, seeds=count, reason=reason, region=region)
    half = student(count) * float(values.std(ddof=1)) / math.sqrt(count)
    return _decide(estimate, estimate - half, estimate + half, count, criterion, region)


@cache
def student(count: int) -> float:
    """Student's two-sided quantile for so many seeds."""
    from scipy import stats  # slow to import, and not every command judges

    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1))


def every(values: np.ndarray[Any, Any], region: Region, *, seeds: int, tolerance: float, what: str = "") -> Judgement:
    """Holds when each value meets the criterion within ``tolerance``; the estimate is the worst, the interval the
    range."""
    wide = Region(region.low - tolerance, region.high + tolerance, region.open)
    slack = f" (tolerance {_number(tolerance)})" if tolerance else ""
    criterion = f"every {what} {region.text()}{slack}".replace("  ", " ")
    finite = bool(np.isfinite(values).all())
    worst = low = high = math.nan
    if finite:
        excess = np.maximum(region.low - values, values - region.high)
        worst, low, high = (float(x) for x in (values[int(excess.argmax())], values.min(), values.max()))
    if seeds < LEAST_SEEDS:
        reason = f"{seeds} seeds, and a verdict needs {LEAST_SEEDS}"
        return Judgement("undecided", criterion, worst, low, high, seeds, reason, region)
    if not finite:
        return Judgement("fails", criterion, seeds=seeds, reason="a value is not finite", region=region)
    verdict: Verdict = "holds" if all(wide.has(float(value)) for value in values) else "fails"
    return Judgement(verdict, criterion, worst, low, high, seeds, region=wide)


def not_run(reason: str, error: str = "") -> Judgement:
    return Judgement("not run", "", reason=reason, error=error)


def _decide(estimate: float, low: float, high: float, seeds: int, criterion: str, region: Region) -> Judgement:
    verdict: Verdict = "undecided"
    if region.contains(low, high):
        verdict = "holds"
    elif region.misses(low, high):
        verdict = "fails"
    return Judgement(verdict, criterion, estimate, low, high, seeds, region=region)


def _number(value: float) -> str:
    return f"{value:.6g}"


@dataclass(frozen=True)
class Claim:
    """A statement from the source that can fail. An identifier that starts with N is a control."""

    id: str
    statement: str
    source: str
    judge: Callable[[Any], Judgement]
    when: Mapping[str, Callable[[Any], bool]]
    setting: str | None = None
    printed: str | None = None
    paper: float | str | None = None
    headline: bool = False

    @property
    def control(self) -> bool:
        return self.id.startswith("N")

    @property
    def order(self) -> tuple[bool, int, str]:
        """C1, C1b, C2, ..., C10, then N1, ..."""
        match = re.fullmatch(r"[A-Z](\d+)(.*)", self.id)
        return (self.control, int(match[1]), match[2]) if match else (self.control, 0, self.id)


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict in one run."""

    study: str
    claim: Claim
    judgement: Judgement
    preset: str
    overrides: Mapping[str, Any]
    run: str = ""

    def row(self) -> dict[str, Any]:
        """The keys that ``assay claims --json`` promises; a number that does not exist is null."""
        claim, judgement = self.claim, self.judgement
        row: dict[str, Any] = {
            "study": self.study,
            "id": claim.id,
            "headline": claim.headline,
            "statement": claim.statement,
            "source": claim.source,
            "verdict": judgement.verdict,
            "estimate": _json(judgement.estimate),
            "low": _json(judgement.low),
            "high": _json(judgement.high),
            "criterion": judgement.criterion,
            "seeds": judgement.seeds,
            "run": self.run,
            "preset": self.preset,
            "set": dict(self.overrides),
        }
        if judgement.reason:
            row["reason"] = judgement.reason
        if judgement.error:
            row["error"] = judgement.error
        if claim.printed is not None:
            row["printed"] = claim.printed
        if claim.paper is not None:
            row["paper"] = claim.paper
        return row


def finding_of(row: Mapping[str, Any]) -> Finding:
    """A finding as ``Finding.row`` wrote it down; what judged it is not part of that."""

    def number(name: str) -> float:
        return math.nan if row[name] is None else float(row[name])

    claim = Claim(
        row["id"],
        row["statement"],
        row["source"],
        _gone,
        {},
        printed=row.get("printed"),
        paper=row.get("paper"),
        headline=row["headline"],
    )
    judgement = Judgement(
        row["verdict"],
        row["criterion"],
        number("estimate"),
        number("low"),
        number("high"),
        row["seeds"],
        row.get("reason", ""),
        error=row.get("error", ""),
    )
    return Finding(row["study"], claim, judgement, row["preset"], row["set"], row["run"])


def _gone(measurements: Any) -> Judgement:
    raise RuntimeError("this claim was read from stored verdicts and cannot be judged again")


def _json(value: float) -> float | None:
    return value if math.isfinite(value) else None
