"""Claims with their verdicts as pages show them, and how many there are of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from markupsafe import Markup

from assay.lab import Finding
from assay.lab.stored import MARKS
from assay.lab.verdicts import Verdict

from . import exhibits, formulas, intervals
from .numbers import number, slug
from .summaries import Side

VERDICTS: tuple[str, ...] = get_args(Verdict)
_ONE = {"holds": "holds", "fails": "fails"}
_MANY = {"holds": "hold", "fails": "fail"}


@dataclass(frozen=True)
class Beside:
    """The same claim in another run of the study."""

    label: str
    verdict: str
    mark: str
    kind: str
    words: str
    seeds: int
    worded: Markup  # the statement, where it was another then


@dataclass(frozen=True)
class Row:
    """A claim with its verdict."""

    finding: Finding
    anchor: str
    mark: str
    kind: str
    drawing: Markup
    words: str
    statement: Markup
    criterion: Markup
    printed: Markup
    paper: Markup
    beside: Sequence[Beside] = ()
    seen_in: Sequence[exhibits.Shown] = ()

    @property
    def verdict(self) -> str:
        return self.finding.judgement.verdict


@dataclass(frozen=True)
class Tally:
    verdict: str
    kind: str
    mark: str
    count: int

    @property
    def text(self) -> str:
        return f"{self.count} {(_ONE if self.count == 1 else _MANY).get(self.verdict, self.verdict)}"


def row(finding: Finding, sides: Iterable[Side] = (), shown: Iterable[exhibits.Shown] = ()) -> Row:
    claim, judgement = finding.claim, finding.judgement
    paper = number(claim.paper, 6) if isinstance(claim.paper, (int, float)) else claim.paper or ""
    return Row(
        finding,
        anchor_of(claim.id),
        MARKS[judgement.verdict],
        kind_of(judgement.verdict),
        intervals.draw(judgement),
        intervals.words(judgement),
        formulas.marked(claim.statement),
        formulas.marked(_unbroken(judgement.criterion)),
        formulas.marked(claim.printed or ""),
        formulas.marked(paper),
        [_beside(side, side.findings[claim.id], claim.statement) for side in sides if claim.id in side.findings],
        [each for each in shown if claim.id in each.shows],
    )


def _beside(side: Side, finding: Finding, statement: str) -> Beside:
    judgement, own = finding.judgement, finding.claim.statement
    return Beside(
        side.label,
        judgement.verdict,
        MARKS[judgement.verdict],
        kind_of(judgement.verdict),
        intervals.words(judgement) or judgement.reason,
        judgement.seeds,
        formulas.marked("" if own == statement else own),
    )


def tally(rows: Iterable[Row]) -> list[Tally]:
    """How many of each verdict, the absent ones left out."""
    return tally_of(row.verdict for row in rows)


def tally_of(verdicts: Iterable[str]) -> list[Tally]:
    counts: Mapping[str, int] = Counter(verdicts)
    return [Tally(v, kind_of(v), MARKS[v], counts[v]) for v in VERDICTS if counts.get(v)]


def anchor_of(id: str) -> str:
    return f"claim-{slug(id)}"


def kind_of(verdict: str) -> str:
    """The verdict as the name of a style."""
    return verdict.replace(" ", "-")


def _unbroken(criterion: str) -> str:
    """Keeps a relation and its number on one line."""
    return re.sub(
        r"([≥≤<>]|\bin) |(?<=\d), (?=[^ ]+[\])])", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), criterion
    )
