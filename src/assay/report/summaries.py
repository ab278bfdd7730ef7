"""The summaries under results/: the runs of a study at several presets and on several data, side by side, and the
benchmarks."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assay.lab import Finding, Region, UserError
from assay.lab.findings import finding_of
from assay.lab.phase_map import PhaseMap
from assay.lab.results import BUNDLED

from .tables import rows_of

_DEFAULTS = {"headline": False, "run": "", "seeds": 0, "method": ""}
_MOST_COLUMNS = 9
_COUNTED = ("times", "wrong", "missed")  # of a kind of fault, beside how runs ended
_ORDER = {"laptop": 0, "paper": 1}
Groups = dict[tuple[str, str, tuple[str, ...]], list[Mapping[str, Any]]]  # by study, preset and data


@dataclass(frozen=True)
class Side:
    """One way in which a study was run: a preset on some data. Summaries of several parts of it are one."""

    study: str
    preset: str
    data: tuple[str, ...]
    documents: tuple[Mapping[str, Any], ...]
    findings: Mapping[str, Finding] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return label(self.preset, self.data)

    @property
    def seeds(self) -> int:
        return max(int(document["seeds"]) for document in self.documents)

    def within(self, claims: Container[str]) -> Side:
        """Without what a study claimed once and does not any more: an old summary still has a verdict on it."""
        return replace(self, findings={id: found for id, found in self.findings.items() if id in claims})

    def facts(self, key: str) -> str:
        """What its parts say of themselves, each once."""
        return "; ".join(dict.fromkeys(str(document.get(key, "")) for document in self.documents))


def label(preset: str, data: Iterable[str]) -> str:
    """A preset, with the data sets that a fresh clone does not have."""
    larger = [name for name in data if name != BUNDLED]
    return f"{preset} · {', '.join(larger)}" if larger else preset


@dataclass(frozen=True)
class Bench:
    name: str
    about: str
    device: str
    machine: str
    versions: str
    columns: list[str]
    rows: list[list[Any]]

    @property
    def grid(self) -> list[list[Any]]:
        """Head and rows; turned over where there are more columns than a page has room for."""
        whole = [self.columns, *self.rows]
        return [list(line) for line in zip(*whole, strict=True)] if len(self.columns) > _MOST_COLUMNS else whole

    @property
    def head(self) -> list[Any]:
        return self.grid[0]

    @property
    def body(self) -> list[list[Any]]:
        return self.grid[1:]


def read(folder: Path) -> tuple[dict[str, list[Side]], list[Bench], list[PhaseMap]]:
    """The sides of each study, what a fresh clone gets first, the benchmarks and the phase maps."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise UserError(f"there are no summaries in {folder}; write one with: assay claims STUDY --save")
    documents = [_document(path) for path in paths]
    groups: Groups = {}
    for document in documents:
        if "claims" in document:
            key = (document["study"], document["preset"], tuple(document.get("data", ())))
            groups.setdefault(key, []).append(document)
    sides: dict[str, list[Side]] = {}
    for (study, preset, data), parts in _joined(groups).items():
        sides.setdefault(study, []).append(Side(study, preset, data, tuple(parts), _findings(parts)))
    for each in sides.values():
        each.sort(key=lambda side: (_ORDER.get(side.preset, 2), side.label.count(" · "), side.label))
    benches = [_bench(document) for document in documents if "rows" in document]
    benches += [_faults(document) for document in documents if "faults" in document]
    return sides, benches, [PhaseMap.from_dict(document) for document in documents if "cells" in document]


def _joined(groups: Groups) -> Groups:
    """A part that read no data goes with the other parts of its preset, if these are all on one set of data. A whole
    run that read none is a side of its own."""
    joined: Groups = {}
    for (study, preset, data), parts in groups.items():
        read = [key[2] for key in groups if key[:2] == (study, preset) and key[2]]
        goes_along = len(read) == 1 and all("arms" in part for part in parts)
        joined.setdefault((study, preset, data or (read[0] if goes_along else ())), []).extend(parts)
    return joined


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"the summary {path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise UserError(f"{path} is no summary of a run or benchmark")
    return document


def _findings(parts: Iterable[Mapping[str, Any]]) -> dict[str, Finding]:
    """Every claim of the parts, as ``rows_of`` chooses them."""
    found: dict[str, Finding] = {}
    for row in rows_of(parts).values():
        finding = finding_of(_DEFAULTS | row)
        region, _ = Region.read(finding.judgement.criterion)
        found[row["id"]] = replace(finding, judgement=replace(finding.judgement, region=region))
    return found


def _faults(document: Mapping[str, Any]) -> Bench:
    """Faults that runs have met, as `make chaos` saves them."""
    rows = [
        [name, seen["times"], ", ".join(f"{count} {end}" for end, count in seen.items() if end not in _COUNTED)]
        for name, seen in document["faults"].items()
    ]
    wrong = len(document["wrong"])
    about = f"{document['about']} {wrong or 'None'} of {document['total']} left anything wrong behind."
    columns = ["fault", "times", "how the run that met it ended"]
    return Bench("faults", about, "cpu", document["machine"], document["versions"], columns, rows)


def _bench(document: Mapping[str, Any]) -> Bench:
    columns = list(document["rows"][0])
    return Bench(
        document["benchmark"],
        document["about"],
        document["device"],
        document["machine"],
        document["versions"],
        columns,
        [[row.get(column) for column in columns] for row in document["rows"]],
    )
