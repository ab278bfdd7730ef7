"""Runs as objects: a manifest with its store, its measurements, its verdicts and its figures."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .confirmation import confirmed, fresh_run
from .discovery import find, mark_of
from .errors import UserError
from .files import DamagedUnit
from .findings import Finding, finding_of
from .manifest import Manifest
from .store import Store

if TYPE_CHECKING:
    import polars as pl

    from .measurements import Measurements
    from .snapshots import Snapshots
    from .study import Study

MARKS = {"holds": "✓", "fails": "✗", "undecided": "?", "not run": "–"}


class Findings(Sequence[Finding]):
    """Claims with their verdicts, in order; indexed by position or by identifier."""

    def __init__(self, found: Iterable[Finding], heading: str = "") -> None:
        self._found = list(found)
        self.heading = heading

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return next((f for f in self._found if f.claim.id == index), None) or self._absent(index)
        return Findings(self._found[index], self.heading) if isinstance(index, slice) else self._found[index]

    def _absent(self, id: str) -> Finding:
        raise KeyError(f"no claim {id} (there are {', '.join(f.claim.id for f in self._found)})")

    @property
    def counts(self) -> dict[str, int]:
        """How many of each verdict, the absent ones left out."""
        seen = Counter(finding.judgement.verdict for finding in self._found)
        return {verdict: seen[verdict] for verdict in MARKS if seen[verdict]}  # type: ignore[index]

    @property
    def broken(self) -> list[Finding]:
        """Claims whose own code is broken."""
        return [finding for finding in self._found if finding.judgement.error]

    def rows(self) -> list[dict[str, Any]]:
        return [finding.row() for finding in self._found]

    def __repr__(self) -> str:
        lines = [
            f"{f.claim.id:5} {MARKS[f.judgement.verdict]} {f.judgement.verdict:9} {f.claim.statement}" for f in self
        ]
        return "\n".join([*([self.heading] if self.heading else []), *lines])

    def _repr_html_(self) -> str:
        cells = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in _cells(finding)) + "</tr>" for finding in self
        )
        head = "".join(
            f"<th>{name}</th>" for name in ("claim", "verdict", "statement", "estimate", "criterion", "seeds")
        )
        return f"<table><caption>{html.escape(self.heading)}</caption><tr>{head}</tr>{cells}</table>"


def _cells(finding: Finding) -> tuple[str, ...]:
    judged = finding.judgement
    estimate = "" if judged.estimate != judged.estimate else f"{judged.estimate:.4g}"
    if judged.low == judged.low:
        estimate += f" [{judged.low:.4g}, {judged.high:.4g}]"
    verdict = f"{MARKS[judged.verdict]} {judged.verdict}"
    return finding.claim.id, verdict, finding.claim.statement, estimate, judged.criterion, str(judged.seeds or "")


@dataclass(frozen=True)
class Run:
    """One run that is stored. ``measurements`` is the tidy table, ``results`` answers a study's questions about it."""

    store: Store
    manifest: Manifest
    outside: str | None = None

    @property
    def id(self) -> str:
        return self.manifest.id

    @cached_property
    def study(self) -> Study:
        return find(self.manifest.study, self.outside)

    @cached_property
    def results(self) -> Measurements:
        """The measurements as claims see them: ``run.results.final("test_accuracy", arm="network")``."""
        from . import results

        return results.load(self.store, self.study, self.manifest)

    @property
    def measurements(self) -> pl.DataFrame:
        """The tidy table: arm, the columns of the grid, seed, step, metric, value."""
        return self.results.frame

    @cached_property
    def claims(self) -> Findings:
        """Every claim with its verdict, and whether it stood on fresh seeds where a run repeats this one on others."""
        fresh = self.fresh
        return Findings(confirmed(self.judged, fresh.judged) if fresh else self.judged, self.manifest.heading)

    @property
    def fresh(self) -> Run | None:
        """The newest run that repeats this one on seeds that it does not have (``lab.confirm``)."""
        return fresh_run(self, self._others())

    @property
    def fresh_seeds(self) -> str:
        """The seeds on which its verdicts were looked at again, in words; empty where nobody did."""
        fresh = self.fresh
        if fresh is None:
            return ""
        seeds = [seed for unit in fresh.manifest.units for seed in unit.seeds]
        return f"{min(seeds)}–{max(seeds)}"

    def _others(self) -> list[Run]:
        manifests = self.store.readable_manifests()
        return [Run(self.store, manifest, self.outside) for manifest in manifests if manifest.id != self.id]

    @property
    def looks(self) -> int:
        """How often this run was looked at while seeds were added: a run of the preset as it is, once."""
        mine = self.manifest
        if mine.seeds is None:
            return 1
        earlier = [
            other.manifest.seeds_used
            for other in self._others()
            if other.id < self.id
            and other.manifest.status == "complete"
            and (other.manifest.preset, other.manifest.params, other.manifest.first_seed)
            == (mine.preset, mine.params, mine.first_seed)
        ]
        return 1 + len({seeds for seeds in earlier if seeds < mine.seeds_used})

    @cached_property
    def judged(self) -> Findings:
        """Every claim with its verdict. What was judged before is read back while neither the units nor any file of
        the study has changed since."""
        looks = self.looks
        mark = mark_of(self.manifest.study, self.outside)
        try:
            units = self.store.checksums(dict.fromkeys(unit.key for unit in self.manifest.units))
        except DamagedUnit as damage:
            raise UserError(f"{damage}; run the study again to compute it anew") from None
        kept = self.store.read_verdicts(self.id)
        known = (kept["judged_by"], kept["units"], kept.get("looks", 1)) if kept is not None else None
        if kept is not None and known == (mark, units, looks):
            return Findings(map(finding_of, kept["claims"]), self.manifest.heading)
        found = self.study.judge(self.results, self.manifest, looks=looks)
        self._keep(mark, units, looks, found)
        return Findings(found, self.manifest.heading)

    def _keep(self, mark: str | None, units: str, looks: int, found: list[Finding]) -> None:
        if mark is None or any(finding.judgement.error for finding in found):
            return
        document = {
            "judged_by": mark,
            "units": units,
            "looks": looks,
            "claims": [finding.row() for finding in found],
            "code_changed": self._code_changed(),
            "parameters_changed": self._parameters_changed(),
        }
        try:
            self.store.write_verdicts(self.id, document)
        except UserError:
            return  # a folder that can only be read is judged anew each time

    def _code_changed(self) -> list[str]:
        from . import results

        return results.code_changed(self.study, self.manifest)

    @cached_property
    def code_changed(self) -> list[str]:
        """The arms whose code is no longer that of this run."""
        kept = self.store.read_verdicts(self.id)
        if kept is not None and kept["judged_by"] == mark_of(self.manifest.study, self.outside):
            return list(kept["code_changed"])
        return self._code_changed()

    def _parameters_changed(self) -> bool:
        from . import results

        return results.parameters_changed(self.study, self.manifest)

    @cached_property
    def parameters_changed(self) -> bool:
        """Whether the same command would now run with other parameters."""
        kept = self.store.read_verdicts(self.id)
        if kept is not None and kept["judged_by"] == mark_of(self.manifest.study, self.outside):
            return bool(kept["parameters_changed"])
        return self._parameters_changed()

    @property
    def snapshots(self) -> list[Snapshots]:
        """Neurons over training, of every arm that recorded them."""
        from .snapshots import snapshots_of

        return snapshots_of(self)

    @property
    def has_snapshots(self) -> bool:
        """Whether there are any, without reading them."""
        from .snapshots import has_snapshots

        return has_snapshots(self)

    @property
    def missing(self) -> int:
        """How many units of the run are not stored."""
        return sum(not self.store.has_name(unit.key) for unit in self.manifest.units)

    def figure(self, name: str) -> Any:
        """A figure of the study, drawn from this run: an Altair chart."""
        return self._exhibit(self.study.figures, "figure", name)

    def table(self, name: str) -> pl.DataFrame:
        """A table of the study, made from this run."""
        made: pl.DataFrame = self._exhibit(self.study.tables, "table", name)
        return made

    def _exhibit(self, shelf: Mapping[str, Any], kind: str, name: str) -> Any:
        from .errors import unknown

        if name not in shelf:
            raise unknown(kind, name, shelf)
        return shelf[name].make(self.results)

    def report(self, out: str | Path = "report") -> Path:
        """Write the site of this run; returns the path of its index."""
        from . import api

        return api.report(self, out=out)

    def __repr__(self) -> str:
        manifest = self.manifest
        named = f" '{manifest.name}'" if manifest.name else ""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.known_counts.items())
        judged = f"; {counts}" if counts else ""
        units = f"{len(manifest.units)} units, {manifest.seeds_used} seeds, {manifest.status}"
        return f"<Run {manifest.id}{named}: {manifest.heading}; {units}{judged}>"

    @property
    def known_counts(self) -> dict[str, int]:
        """How many of each verdict, where the run was judged already: looking at it judges nothing."""
        kept = self.store.read_verdicts(self.id)
        return Findings(map(finding_of, kept["claims"])).counts if kept else {}

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.claims._repr_html_()}"
