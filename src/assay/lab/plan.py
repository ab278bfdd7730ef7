"""The plan of a run: its units of work, each addressed by what determines its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .chunks import chunk_size, chunks
from .code_version import code_version
from .errors import UserError, unknown
from .params import Params, ParamsView
from .requirements import missing_requirement
from .study import Arm, Study


@dataclass(frozen=True)
class Request:
    """What a person asked for: the study is resolved against it."""

    preset: str = "laptop"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    arms: str | None = None
    device: str = "cpu"


@dataclass(frozen=True)
class Unit:
    """One arm × one point of its grid × one chunk of seeds. It travels by name: no code, only words and numbers."""

    study: str
    arm: str
    point: Mapping[str, Any]
    seeds: tuple[int, ...]
    params: Mapping[str, Any]
    device: str
    dtype: str
    key: str

    @property
    def label(self) -> str:
        point = " ".join(f"{name}={value}" for name, value in self.point.items())
        return " ".join(part for part in (self.arm, point, f"seeds {self.seeds[0]}–{self.seeds[-1]}") if part)


@dataclass(frozen=True)
class Plan:
    study: Study
    request: Request
    units: list[Unit]
    skipped: dict[str, str]  # arm -> why it does not run


def make_plan(study: Study, request: Request, stored: Callable[[str], bool] = lambda key: False) -> Plan:
    """The units that ``request`` asks for. An arm whose data or extra is not here is left out, unless all its units
    are ``stored``: those may come from another machine."""
    preset = study.preset(request.preset)
    if request.seeds is not None and request.seeds < 1:
        raise UserError(f"--seeds {request.seeds} is not allowed: a run needs at least one seed")
    params = study.resolve(request.preset, request.overrides)
    for setting in study.settings:
        study.resolve(request.preset, request.overrides, setting)
    names, asked = _chosen_arms(study, request)
    units: list[Unit] = []
    skipped: dict[str, str] = {}
    for name in names:
        arm = study.arms[name]
        mine: list[Unit] = []
        for point in arm.points(params):
            resolved = study.resolve(request.preset, request.overrides, point.get("setting"))
            limits = [limit for key, limit in preset.fewer.items() if key in (name, point.get("setting"))]
            count = request.seeds if request.seeds is not None else min([preset.seeds, *limits])
            mine += _units(study, arm, point, resolved, count, request.device)
        reason = missing_requirement(arm.requirements(params), request.device)
        if reason and not all(stored(unit.key) for unit in mine):
            if name in asked:
                raise UserError(f"arm '{name}' cannot run: {reason}")
            skipped[name] = reason
        else:
            units += mine
    # A grid may name a point twice; one address is one unit.
    return Plan(study, request, list({unit.key: unit for unit in units}.values()), skipped)


def idle_overrides(study: Study, request: Request) -> list[str]:
    """Overrides that change a parameter and yet no unit: no arm of the plan reads it, or settings fix it."""
    idle = []
    for name in request.overrides:
        fewer = replace(request, overrides={n: v for n, v in request.overrides.items() if n != name})
        try:
            changed = study.resolve(request.preset, request.overrides) != study.resolve(request.preset, fewer.overrides)
            same = _keys(study, request) == _keys(study, fewer)
        except UserError:  # without it the others do not go together, so it does something
            continue
        if changed and same:
            idle.append(name)
    return idle


def _keys(study: Study, request: Request) -> list[str]:
    return [unit.key for unit in make_plan(study, request, lambda key: True).units]


def _units(study: Study, arm: Arm, point: dict[str, Any], params: Params, count: int, device: str) -> list[Unit]:
    view = ParamsView(params, arm.uses)
    size = chunk_size(arm.working_set(view) if arm.working_set else None, device)
    version = code_version(study.module)
    made = []
    for seeds in chunks(count, size):
        address = {
            "arm": arm.name,
            "point": point,
            "params": view.used(),
            "seeds": seeds,
            "device": device,
            "dtype": arm.dtype,
            "code": version,
        }
        text = json.dumps(address, sort_keys=True, default=str)
        key = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
        dump = params.model_dump(mode="json")
        made.append(Unit(study.name, arm.name, point, seeds, dump, device, arm.dtype, key))
    return made


def _chosen_arms(study: Study, request: Request) -> tuple[list[str], set[str]]:
    """The arms that run, in the study's order, and those that were asked for by name."""
    default = study.usual_arms(request.preset)
    if not request.arms:
        return [name for name in study.arms if name in default], set()
    words = [word.strip() for word in request.arms.split(",") if word.strip()]
    asked = {word.removeprefix("+") for word in words}
    for name in sorted(asked):
        if name not in study.arms:
            raise unknown("arm", name, study.arms)
    chosen = asked | default if all(word.startswith("+") for word in words) else asked
    return [name for name in study.arms if name in chosen], asked
