"""Phase maps on a study's page: where a claim holds, with the predicted boundary, and every cell in a table."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from assay.lab.phase_map import Cell, PhaseMap
from assay.lab.stored import MARKS
from assay.lab.study import Study

from . import charts, theme
from .exhibits import Figure
from .numbers import measured, number, value
from .rows import Tally, kind_of, tally_of


@dataclass(frozen=True)
class Place:
    """A cell of a map in its table. ``here`` is the address of its run where the site has that."""

    words: str
    at: tuple[str, ...]
    verdict: str
    kind: str
    mark: str
    estimate: str
    predicted: str
    agrees: bool | None
    command: str
    here: str


@dataclass(frozen=True)
class Map(Figure):
    statement: str = ""
    criterion: str = ""
    axes: tuple[str, ...] = ()
    counts: Sequence[Tally] = ()
    boundary: str = ""
    agreement: str = ""
    places: Sequence[Place] = ()

    kind: ClassVar[str] = "Map"


def distinct(found: Iterable[PhaseMap]) -> list[PhaseMap]:
    """The maps without those that a later or larger one of the same claim and grid contains; the first of equals."""
    kept: list[PhaseMap] = []
    for each in sorted(found, key=lambda each: -len(each.cells)):
        if not any(_contains(other, each) for other in kept):
            kept.append(each)
    return sorted(kept, key=lambda each: (each.claim, -len(each.cells)))


def _contains(larger: PhaseMap, smaller: PhaseMap) -> bool:
    same = [(m.study, m.claim, m.preset, _asked(m), list(m.axes)) for m in (larger, smaller)]
    places = {_text(cell.at) for cell in larger.cells}
    return same[0] == same[1] and all(_text(cell.at) in places for cell in smaller.cells)


def _asked(found: PhaseMap) -> str:
    """What all cells share; maps that were saved earlier have parameters as a shell has them."""
    given = {name: _plain(chosen) for name, chosen in found.request.get("set", {}).items()}
    return _text({**found.request, "set": given})


def _text(given: Mapping[str, Any]) -> str:
    return json.dumps(given, sort_keys=True, default=str)


@dataclass(frozen=True)
class Runs:
    """The runs of cells: the address of each that the site has a page of, and those that are ``stored``."""

    pages: Mapping[str, str] = field(default_factory=dict)
    stored: Collection[str] = frozenset()


def shown(study: Study, found: Sequence[PhaseMap], runs: Runs) -> list[Map]:
    """Maps for the page of a study."""
    return [_map(study, each, n, runs) for n, each in enumerate(distinct(found), 1)]


def _map(study: Study, found: PhaseMap, at: int, runs: Runs) -> Map:
    over = " and ".join(found.axes)
    says = [found.statement, f"Over {over}, at the preset {found.preset}."]
    spec = {"description": " ".join(says), **theme.spec(found.figure())}
    svg = charts.drawing(spec)
    return Map(
        name=f"map-{found.claim}-{at}",
        title=f"{found.claim} over {over}",
        caption=f"{found.statement} {_legend(found)}",
        shows=(found.claim,) if found.claim in study.claims else (),
        number=at,
        data=charts.packed(spec),
        renderer=charts.renderer(spec),
        width=charts.width(svg),
        statement=found.statement,
        criterion=found.criterion,
        axes=tuple(found.axes),
        counts=tally_of(cell.verdict for cell in found.cells),
        boundary=found.boundary,
        agreement=_agreement(found),
        places=[_place(found, cell, runs) for cell in found.cells],
    )


def _legend(found: PhaseMap) -> str:
    cells = (
        "Each cell is a setting of both parameters"
        if len(found.axes) == 2
        else "Each point is a value of the parameter"
    )
    line = ", and the line is the boundary that the theory predicts" if found.segments else ""
    left = f" {found.unvisited} cells were not visited." if found.unvisited else ""
    return f"{cells}{line}; choose one to see its numbers and the way to its run.{left}"


def _agreement(found: PhaseMap) -> str:
    if not found.compared:
        return ""
    decided = sum(cell.verdict in ("holds", "fails") for cell in found.compared)
    among = f", {found.decided_agreement:.0%} of the {decided} that are decided" if decided else ""
    return f"{found.agreement:.0%} of {len(found.compared)} cells{among}"


def _place(found: PhaseMap, cell: Cell, runs: Runs) -> Place:
    sides = {True: "holds", False: "fails", None: ""}
    known = cell.predicted is not None and math.isfinite(cell.predicted)
    numbers = (cell.estimate, cell.low, cell.high)
    if not math.isfinite(cell.estimate):
        estimate = cell.reason
    else:
        estimate = measured(*numbers) if all(map(math.isfinite, numbers)) else number(cell.estimate)
    return Place(
        words=", ".join(f"{name} = {chosen}" for name, chosen in cell.at.items()),  # as the chart's data says it
        at=tuple(value(chosen) for chosen in cell.at.values()),
        verdict=cell.verdict,
        kind=kind_of(cell.verdict),
        mark=MARKS[cell.verdict],
        estimate=estimate,
        predicted=sides[(cell.predicted or 0) > 0 if known else None],
        agrees=cell.agrees,
        command=_command(found, cell, runs),
        here=runs.pages.get(cell.run, ""),
    )


def _command(found: PhaseMap, cell: Cell, runs: Runs) -> str:
    """The command that reads the run of a cell, or runs the cell by itself where that is not stored."""
    if cell.run in runs.stored:
        return shlex.join(["assay", "claims", found.study, "--run", cell.run])
    if cell.verdict == "not run":
        return ""
    asked = found.request
    given = {**asked.get("set", {}), **cell.at}
    words = ["assay", "run", found.study, "--preset", found.preset]
    for option in ("seeds", "arms"):
        if asked.get(option):
            words += [f"--{option}", str(asked[option])]
    for name, chosen in given.items():
        words += ["--set", f"{name}={_plain(chosen)}"]
    for name, chosen in asked.get("point", {}).items():
        words += ["--point", f"{name}={chosen}"]
    if asked.get("first_seed"):
        words += ["--first-seed", str(asked["first_seed"])]
    return shlex.join(words)


def _plain(chosen: Any) -> str:
    return ",".join(map(str, chosen)) if isinstance(chosen, (list, tuple)) else str(chosen)
