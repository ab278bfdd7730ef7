"""Claims, and claims with their verdicts: one by one, and all of a study together."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .intervals import holm
from .verdicts import Judgement


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
    def order(self) -> tuple[int, int, str]:
        """C1, C1b, C2, ..., C10, then X1, ... beyond the source, then the controls N1, ..."""
        kind = {"X": 1, "N": 2}.get(self.id[:1], 0)
        match = re.fullmatch(r"[A-Z](\d+)(.*)", self.id)
        return (kind, int(match[1]), match[2]) if match else (kind, 0, self.id)


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict in one run."""

    study: str
    claim: Claim
    judgement: Judgement
    preset: str
    overrides: Mapping[str, Any]
    run: str = ""
    confirmed: bool | None = None  # whether the verdict stood on other seeds; None where nobody looked
    fresh: Judgement | None = None  # what came out on those

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
            "method": judgement.method,
            "decided_by": judgement.decided_by,
            "run": self.run,
            "preset": self.preset,
            "set": dict(self.overrides),
        }
        if judgement.reason:
            row["reason"] = judgement.reason
        for name in ("error", "note"):
            if text := getattr(judgement, name):
                row[name] = text
        low, high = judgement.share_interval
        if judgement.method in ("every", "equal") and math.isfinite(low):
            row |= {"share_low": round(low, 4), "share_high": round(high, 4)}
        for name in ("met", "needed"):
            if (count := getattr(judgement, name)) is not None:
                row[name] = count
        for name in ("p", "adjusted"):
            if math.isfinite(number := getattr(judgement, name)):
                row[name] = float(f"{number:.3g}")
        if judgement.by_seed:
            row["values"] = [float(f"{value:.5g}") if math.isfinite(value) else None for value in judgement.by_seed]
        if self.confirmed is not None:
            row["confirmed"] = self.confirmed
        if self.fresh is not None:
            numbers = {name: _json(getattr(self.fresh, name)) for name in ("estimate", "low", "high")}
            row["fresh"] = {"verdict": self.fresh.verdict, **numbers, "seeds": self.fresh.seeds}
        if claim.printed is not None:
            row["printed"] = claim.printed
        if claim.paper is not None:
            row["paper"] = claim.paper
        return row


def finding_of(row: Mapping[str, Any]) -> Finding:
    """A finding as ``Finding.row`` wrote it down; what judged it is not part of that."""

    def number(name: str, of: Mapping[str, Any] = row) -> float:
        return math.nan if of[name] is None else float(of[name])

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
        method=row.get("method", ""),
        met=row.get("met"),
        adjusted=row.get("adjusted", math.nan),
        note=row.get("note", ""),
        by_seed=tuple(math.nan if value is None else value for value in row.get("values", ())),
        known={name: row[name] for name in ("p", "needed", "decided_by") if name in row},
    )
    fresh = None
    if again := row.get("fresh"):
        estimate, low, high = (number(name, again) for name in ("estimate", "low", "high"))
        fresh = Judgement(again["verdict"], row["criterion"], estimate, low, high, again["seeds"])
    stood = row.get("confirmed")
    return Finding(row["study"], claim, judgement, row["preset"], row["set"], row["run"], stood, fresh)


def _gone(measurements: Any) -> Judgement:
    raise RuntimeError("this claim was read from stored verdicts and cannot be judged again")


def _json(value: float) -> float | None:
    return value if math.isfinite(value) else None


def among_all(judged: Mapping[str, Judgement], headlines: Collection[str]) -> dict[str, Judgement]:
    """The judgements of a study together: each with its error after Holm's correction for all of them. A headline that
    would hold alone and does not among all is undecided."""
    adjusted = holm({id: each.p for id, each in judged.items() if math.isfinite(each.p)})
    found = {id: replace(each, adjusted=adjusted.get(id, math.nan)) for id, each in judged.items()}
    for id in headlines:
        each = found[id]
        if each.verdict == "holds" and not each.stands:
            reason = f"it would hold alone, and does not among {len(adjusted)} claims (Holm: {each.adjusted:.2g})"
            found[id] = replace(each, verdict="undecided", reason=reason)
    return found
