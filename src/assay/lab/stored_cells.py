"""The cells that are stored: which run answers one, whoever computed it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .errors import UserError
from .manifest import Manifest
from .planning import Plan
from .store import Store
from .stored import Run
from .study import Study
from .units import Request


class StoredCells:
    """The complete runs of cells in a store, by their parameters. A manifest is read once; ``look_again`` reads those
    that have come since."""

    def __init__(self, study: Study, store: Store, outside: str | None) -> None:
        self._study, self._store, self._outside = study, store, outside
        self._read: set[str] = set()
        self._found: dict[str, list[Manifest]] = {}
        self.look_again()

    def look_again(self) -> None:
        for id in self._store.manifest_ids(cells=True):
            if id not in self._read:
                self._take(id)

    def _take(self, id: str) -> None:
        try:
            manifest = self._store.manifest(id)
        except UserError:  # a damaged manifest stands in the way of its own run alone
            self._read.add(id)
            return
        if manifest.status != "running":  # one that is may be complete at the next look
            self._read.add(id)
        if manifest.status == "complete":
            mark = _mark(manifest.preset, manifest.params, manifest.settings)
            self._found.setdefault(mark, []).append(manifest)

    def has(self, request: Request) -> bool:
        """Whether there is a run with these parameters, whatever its arms and seeds."""
        return bool(self._with_parameters_of(request))

    def run_of(self, plan: Plan) -> Run | None:
        """The stored run of this very cell: the same parameters, units and seeds."""
        units = [(unit.key, list(unit.takes)) for unit in plan.units]
        for manifest in reversed(self._with_parameters_of(plan.request)):
            if [(unit.key, unit.seeds) for unit in manifest.units] == units:
                return Run(self._store, manifest, self._outside)
        return None

    def _with_parameters_of(self, request: Request) -> list[Manifest]:
        # By what parameters came to, not by how they were written: "8" and 8 are one value.
        settings = {name: self._resolved(request, name) for name in self._study.settings}
        return self._found.get(_mark(request.preset, self._resolved(request), settings), [])

    def _resolved(self, request: Request, setting: str | None = None) -> dict[str, Any]:
        return self._study.resolve(request.preset, request.overrides, setting).model_dump(mode="json")


def _mark(preset: str, params: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]) -> str:
    return json.dumps([preset, params, settings], sort_keys=True)
