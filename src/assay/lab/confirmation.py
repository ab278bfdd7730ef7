"""Confirmation: the claims of a run judged once more on seeds that it did not have."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .findings import Finding

if TYPE_CHECKING:
    from .manifest import Manifest
    from .stored import Run

FIRST_SEED = 1000


@dataclass(frozen=True)
class Repeated:
    """One claim, judged twice. ``stands`` is None where the first time decided nothing."""

    first: Finding
    second: Finding

    @property
    def stands(self) -> bool | None:
        return stands(self.first, self.second)

    def row(self) -> dict[str, Any]:
        first, second = self.first.judgement, self.second.judgement
        return {
            "study": self.first.study,
            "id": self.first.claim.id,
            "headline": self.first.claim.headline,
            "statement": self.first.claim.statement,
            "verdict": first.verdict,
            "fresh_verdict": second.verdict,
            "estimate": None if first.estimate != first.estimate else first.estimate,
            "fresh_estimate": None if second.estimate != second.estimate else second.estimate,
            "confirmed": self.stands,
        }


@dataclass(frozen=True)
class Confirmation:
    """Two runs of the same preset on different seeds, claim by claim."""

    first: Run
    second: Run
    claims: tuple[Repeated, ...]

    @property
    def lost(self) -> list[Repeated]:
        """Claims that were decided and did not come out so again."""
        return [each for each in self.claims if each.stands is False]

    @property
    def summary(self) -> str:
        decided = [each for each in self.claims if each.stands is not None]
        headlines = [each for each in decided if each.first.claim.headline]
        seeds = f"seeds from {self.second.manifest.first_seed} on"
        words = f"{sum(bool(each.stands) for each in decided)} of {len(decided)} verdicts stand on {seeds}"
        if headlines:
            words += f", {sum(bool(each.stands) for each in headlines)} of {len(headlines)} headlines among them"
        return f"{self.first.manifest.study}: {words}"

    def rows(self) -> list[dict[str, Any]]:
        return [each.row() for each in self.claims]

    def __repr__(self) -> str:
        lines = [
            f"{each.first.claim.id:5} {each.first.judgement.verdict} → {each.second.judgement.verdict}: "
            f"{each.first.claim.statement}"
            for each in self.lost
        ]
        return "\n".join([self.summary, *lines])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def repeated(first: Run, second: Run) -> Confirmation:
    """Two runs claim by claim."""
    again = {finding.claim.id: finding for finding in second.judged}
    pairs = [Repeated(finding, again[finding.claim.id]) for finding in first.judged if finding.claim.id in again]
    return Confirmation(first, second, tuple(pairs))


def stands(first: Finding, second: Finding) -> bool | None:
    """Whether a verdict came out again; None where there was none, or where the second time could not look."""
    if first.judgement.verdict not in ("holds", "fails") or second.judgement.verdict == "not run":
        return None
    return first.judgement.verdict == second.judgement.verdict


def fresh_run(run: Run, others: Iterable[Run]) -> Run | None:
    """The newest complete run that repeats another on seeds of which that has none, by the same code."""
    manifest, mine = run.manifest, _seeds(run)
    for other in sorted(others, key=lambda each: each.id, reverse=True):
        theirs = other.manifest
        same = _asked(theirs) == _asked(manifest) and theirs.code == manifest.code
        if same and theirs.status == "complete" and not mine & _seeds(other):
            return other
    return None


def _asked(manifest: Manifest) -> tuple[object, ...]:
    """What two runs must have in common apart from seeds. The parameters say on which data: what the preset leaves to
    the machine is settled there."""
    return manifest.preset, manifest.set, manifest.params, manifest.point, manifest.asked_arms


def confirmed(found: Iterable[Finding], fresh: Iterable[Finding]) -> list[Finding]:
    """Findings that say whether their verdicts stood on fresh seeds."""
    again = {finding.claim.id: finding for finding in fresh}
    return [_looked_at_again(finding, again.get(finding.claim.id)) for finding in found]


def _looked_at_again(finding: Finding, second: Finding | None) -> Finding:
    if second is None or second.judgement.verdict == "not run":
        return finding
    return replace(finding, confirmed=stands(finding, second), fresh=second.judgement)


def _seeds(run: Run) -> set[int]:
    return {seed for unit in run.manifest.units for seed in unit.seeds}
