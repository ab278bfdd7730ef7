"""Two runs side by side: which verdicts and estimates moved, and what differs in parameters, code and machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .findings import Finding
from .stored import Run


@dataclass(frozen=True)
class Change:
    """A claim in two runs; a side is None where the run does not have it."""

    id: str
    before: Finding | None
    after: Finding | None

    @property
    def turned(self) -> bool:
        return self._verdict(self.before) != self._verdict(self.after)

    @property
    def moved(self) -> bool:
        return self._estimate(self.before) != self._estimate(self.after)

    @staticmethod
    def _verdict(finding: Finding | None) -> str:
        return finding.judgement.verdict if finding else "absent"

    @staticmethod
    def _estimate(finding: Finding | None) -> float | None:
        estimate = finding.judgement.estimate if finding else None
        return None if estimate is None or estimate != estimate else estimate


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side. ``turned`` are the claims whose verdict differs, ``moved`` those whose estimate does."""

    a: Run
    b: Run
    claims: list[Change]
    parameters: dict[str, tuple[Any, Any]]
    request: dict[str, tuple[Any, Any]]
    code: dict[str, list[str]]  # arm -> files that differ
    machines: dict[str, tuple[str, str]]

    @property
    def turned(self) -> list[Change]:
        return [change for change in self.claims if change.turned]

    @property
    def moved(self) -> list[Change]:
        return [change for change in self.claims if change.moved and not change.turned]

    def __repr__(self) -> str:
        same = len(self.claims) - len(self.turned) - len(self.moved)
        return (
            f"<Comparison of {self.a.id} and {self.b.id}: {len(self.turned)} verdicts turned, {len(self.moved)} "
            f"estimates moved, {same} claims the same; {len(self.parameters)} parameters differ>"
        )


def compare(a: Run, b: Run) -> Comparison:
    before = {finding.claim.id: finding for finding in a.claims}
    after = {finding.claim.id: finding for finding in b.claims}
    ids = dict.fromkeys([*before, *after])
    first, second = a.manifest, b.manifest
    request = {
        "preset": (first.preset, second.preset),
        "seeds": (_seeds(a), _seeds(b)),
        "arms": (", ".join(first.arms), ", ".join(second.arms)),
        "point": (first.point, second.point),
        "device": (first.device, second.device),
        "status": (first.status, second.status),
    }
    machines = {key: (getattr(first, key), getattr(second, key)) for key in ("machine", "versions", "commit")}
    return Comparison(
        a,
        b,
        [Change(id, before.get(id), after.get(id)) for id in ids],
        _parameters(a, b),
        {key: pair for key, pair in request.items() if pair[0] != pair[1]},
        _code(a, b),
        {key: pair for key, pair in machines.items() if pair[0] != pair[1]},
    )


def _seeds(run: Run) -> str:
    seeds = sorted({seed for unit in run.manifest.units for seed in unit.seeds})
    return f"{seeds[0]} to {seeds[-1]}" if seeds else "none"


def _parameters(a: Run, b: Run) -> dict[str, tuple[Any, Any]]:
    sides = []
    for run in (a, b):
        given = dict(run.manifest.params)
        for setting, values in run.manifest.settings.items():
            own = {name: value for name, value in values.items() if value != run.manifest.params.get(name)}
            given |= {f"{setting}.{name}": value for name, value in own.items()}
        sides.append(given)
    first, second = sides
    return {
        name: (first.get(name), second.get(name))
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    }


def _code(a: Run, b: Run) -> dict[str, list[str]]:
    """The files that differ, of the arms that both runs have and whose code differs."""
    found: dict[str, list[str]] = {}
    for arm in (arm for arm in a.manifest.arms if arm in b.manifest.arms):
        if a.manifest.code.get(arm) == b.manifest.code.get(arm):
            continue
        then, now = (_files(run, arm) for run in (a, b))
        found[arm] = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    return found


def _files(run: Run, arm: str) -> dict[str, str]:
    for unit in run.manifest.units:
        meta = run.store.meta(unit.key) if unit.arm == arm else None
        if meta is not None:
            return dict((meta.get("code") or {}).get("files", {}))
    return {}
