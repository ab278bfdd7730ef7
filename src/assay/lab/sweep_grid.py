"""What a sweep was asked for, and its grid as the parameters have it, whoever wrote the values down."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import UserError, unknown
from .findings import Claim
from .grids import Place, check_axes
from .params import Params
from .study import Study
from .units import Request


@dataclass(frozen=True)
class Asked:
    """What a person asked for: a claim of a study over a grid, and what else its runs have."""

    study: Study
    claim: Claim
    axes: Mapping[str, Sequence[Any]]
    request: Request
    budget: float | None = None

    @property
    def places(self) -> list[Place]:
        return list(itertools.product(*(range(len(values)) for values in self.axes.values())))

    def overrides(self, place: Place) -> dict[str, Any]:
        """The parameters of a cell, as they were written."""
        chosen = {name: values[at] for (name, values), at in zip(self.axes.items(), place, strict=True)}
        return {**self.request.overrides, **chosen}


@dataclass(frozen=True)
class Grid:
    """The cells: each has parameters, or a reason why its settings do not go together. The values along ``axes``, and
    those that all cells ``shared``, are typed: a shell's "8" is the 8 of a script, so that both mean the same cells."""

    axes: Mapping[str, Sequence[Any]]
    shared: Mapping[str, Any]
    params: Mapping[Place, Params]
    impossible: Mapping[Place, str]

    @property
    def lengths(self) -> list[int]:
        return [len(values) for values in self.axes.values()]

    def at(self, place: Place) -> dict[str, Any]:
        return {name: values[at] for (name, values), at in zip(self.axes.items(), place, strict=True)}

    def overrides(self, place: Place) -> dict[str, Any]:
        return {**self.shared, **self.at(place)}

    def name(self, asked: Asked) -> str:
        """A name for the map: the claim, and a hash of everything that was asked for but the time."""
        request = asked.request
        parts = [self.axes, request.preset, self.shared, request.seeds, request.first_seed, request.arms]
        text = json.dumps([*parts, request.point, request.device], sort_keys=True, default=str)
        return f"{asked.claim.id}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"


def grid_of(asked: Asked) -> Grid:
    """The grid, or one sentence where a name is unknown or a row of it has no possible cell."""
    check_axes(asked.axes)
    study, preset = asked.study, asked.request.preset
    study.preset(preset)  # what is wrong whatever the cell is told as it is elsewhere
    for name in (*asked.axes, *asked.request.overrides):
        if (own := name.rpartition(".")[2]) not in study.model.model_fields:
            raise unknown("parameter", own, study.model.model_fields)
    params: dict[Place, Params] = {}
    impossible: dict[Place, str] = {}
    axes = {name: list(values) for name, values in asked.axes.items()}
    for place in asked.places:
        try:
            overrides = asked.overrides(place)
            found = study.resolve(preset, overrides, asked.claim.setting)
            for setting in study.settings:
                study.resolve(preset, overrides, setting)
            params[place] = found
            for name, at in zip(axes, place, strict=True):
                axes[name][at] = _typed(asked, name, overrides)
        except UserError as error:
            impossible[place] = str(error)
    _check_rows(axes, params, impossible)
    first = asked.overrides(next(iter(params)))
    shared = {name: _typed(asked, name, first) for name in asked.request.overrides}
    return Grid(axes, shared, params, impossible)


def _typed(asked: Asked, name: str, overrides: Mapping[str, Any]) -> Any:
    setting, _, own = name.rpartition(".")
    return asked.study.resolve(asked.request.preset, overrides, setting or None).model_dump(mode="json")[own]


def _check_rows(axes: Mapping[str, Sequence[Any]], params: Mapping[Place, Params], why: Mapping[Place, str]) -> None:
    if not params:
        raise UserError(f"no cell is possible: {next(iter(why.values()))}")
    for axis, (name, values) in enumerate(axes.items()):
        for at, value in enumerate(values):
            if all(place[axis] != at for place in params):
                reason = next(reason for place, reason in why.items() if place[axis] == at)
                raise UserError(f"no cell is possible with {name}={value}: {reason}")
        if len({str(value) for value in values}) < len(values):
            raise UserError(f"--vary {name} has two values that come to the same")
