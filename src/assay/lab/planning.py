"""The plan of a run: its units of work, each addressed by what determines its result, and what is stored of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .chunks import chunk_size, chunks
from .code_version import ArmCode
from .discovery import codes_of
from .errors import UserError, unknown
from .joining import Origin, origins
from .params import Params, ParamsView
from .registry import Arm
from .requirements import fingerprints, missing_files, missing_requirement
from .store import Store, StoredRange
from .study import Study
from .units import Request, Unit

_NO_BOUNDARY = 1 << 62


@dataclass(frozen=True)
class Plan:
    """What a request comes to. ``stored`` are the keys of units that are there; ``codes`` the arms' code as it is."""

    study: Study
    request: Request
    units: list[Unit]
    skipped: dict[str, str]  # arm -> why it does not run
    stored: frozenset[str] = frozenset()
    codes: Mapping[str, ArmCode] = field(default_factory=dict)

    @property
    def to_compute(self) -> list[Unit]:
        return [unit for unit in self.units if unit.key not in self.stored]

    @property
    def to_reuse(self) -> list[Unit]:
        return [unit for unit in self.units if unit.key in self.stored]

    @property
    def data(self) -> list[str]:
        """The names of the data sets that its units read."""
        asked = self.request
        read = dict.fromkeys((unit.arm, unit.point.get("setting")) for unit in self.units)
        sets = {
            name
            for arm, setting in read
            for name in self.study.arms[arm].data(self.study.resolve(asked.preset, asked.overrides, setting))
        }
        return sorted(sets)


def make_plan(study: Study, request: Request, store: Store | None = None) -> Plan:
    """The units that ``request`` asks for. An arm whose data or extra is not here is left out, unless all its units
    are stored: those may come from another machine."""
    _check(request)
    params = study.resolve(request.preset, request.overrides)
    for setting in study.settings:
        study.resolve(request.preset, request.overrides, setting)
    names, asked = _chosen_arms(study, request)
    codes = codes_of(study, names)
    made_by = {name: Origin(request.device, code) for name, code in codes.items()}
    if request.stored and store is not None:
        made_by |= origins(codes, store)
    shelf = _Shelf(store, study)
    units: list[Unit] = []
    skipped: dict[str, str] = {}
    points = {name: _points(study.arms[name], params, request) for name in names}
    if request.point and not any(points.values()):
        raise _no_such_point(study, names, params, request)
    for name in (name for name in names if points[name]):
        arm = study.arms[name]
        mine: list[Unit] = []
        for point in points[name]:
            resolved = study.resolve(request.preset, request.overrides, point.get("setting"))
            mine += _units(study, arm, point, resolved, _seeds(study, request, name, point), made_by[name], shelf)
        reason = missing_requirement(arm.requirements(params), request.device)
        reason = reason or missing_files(arm.files(params, study.folder))
        if reason and not all(shelf.whole(unit) for unit in mine):
            if name in asked:
                raise UserError(f"arm '{name}' cannot run: {reason}")
            skipped[name] = reason
        else:
            units += mine
    # A grid may name a point twice, which is one unit; one stored unit may answer several chunks, which are not.
    once = {(unit.key, unit.takes): unit for unit in units}
    return Plan(study, request, list(once.values()), skipped, shelf.taken, codes)


def refuse_idle_overrides(study: Study, request: Request) -> None:
    """Refuse an override that changes a parameter and yet no unit: the run would look like one of another value."""
    for name, value in request.overrides.items():
        fewer = replace(request, overrides={n: v for n, v in request.overrides.items() if n != name})
        try:
            setting = name.partition(".")[0] if "." in name else None
            changed = study.resolve(request.preset, request.overrides, setting) != study.resolve(
                request.preset, fewer.overrides, setting
            )
            same = _addresses(study, request) == _addresses(study, fewer)
        except UserError:  # without it the others do not go together, so it does something
            continue
        if changed and same:
            readers = [arm.name for arm in study.arms.values() if name in arm.read]
            others = f"; the arms that read it are {', '.join(readers)}" if readers else ""
            raise UserError(
                f"--set {name}={value} changes nothing that this run of {study.name} computes: no chosen arm reads "
                f"the parameter, or its settings fix it{others}"
            )


def _addresses(study: Study, request: Request) -> list[str]:
    return [unit.key for unit in make_plan(study, request, None).units]


def _check(request: Request) -> None:
    if request.seeds is not None and request.seeds < 1:
        raise UserError(f"--seeds {request.seeds} is not allowed: a run needs at least one seed")
    if request.first_seed < 0:
        raise UserError(f"--first-seed {request.first_seed} is not allowed: seeds are counted from 0")


def _seeds(study: Study, request: Request, arm: str, point: Mapping[str, Any]) -> range:
    preset = study.preset(request.preset)
    limits = [limit for key, limit in preset.fewer.items() if key in (arm, point.get("setting"))]
    count = request.seeds if request.seeds is not None else min([preset.seeds, *limits])
    return range(request.first_seed, request.first_seed + count)


class _Shelf:
    """What is stored, as a plan looks at it: by name, with no file opened unless its inputs may have changed."""

    def __init__(self, store: Store | None, study: Study) -> None:
        self._store = store
        self._study = study
        self._ranges = store.ranges() if store else {}
        self._taken: set[str] = set()

    @property
    def taken(self) -> frozenset[str]:
        return frozenset(self._taken)

    def cover(self, unit: Unit, arm: Arm, params: Params) -> list[Unit]:
        """The unit's seeds from what is stored, and the rest as units of their own."""
        usable = [r for r in self._ranges.get(unit.address, ()) if self._same_inputs(r, unit, arm, params)]
        wanted, pieces = set(unit.seeds), []
        # A unit that has just these seeds comes first; then those that have most of them.
        for found in sorted(usable, key=lambda r: (r.key != unit.key, -_shared(r, unit.seeds), r.first)):
            takes = tuple(seed for seed in range(found.first, found.last + 1) if seed in wanted)
            if takes:
                wanted -= set(takes)
                seeds = tuple(range(found.first, found.last + 1))
                pieces.append(replace(unit, seeds=seeds, takes=takes, inputs=found.inputs))
                self._taken.add(found.key)
        missing = [replace(unit, seeds=part, takes=part) for part in chunks(sorted(wanted), _NO_BOUNDARY)]
        return sorted([*pieces, *missing], key=lambda piece: piece.takes[0])

    def whole(self, unit: Unit) -> bool:
        return unit.key in self._taken and self._store is not None and self._store.whole(unit.key)

    def _same_inputs(self, found: StoredRange, unit: Unit, arm: Arm, params: Params) -> bool:
        """Files and data sets that an arm reads count by content; those that are not here cannot be compared."""
        if found.inputs == unit.inputs:
            return True
        here = inputs_of(self._study, arm, params)
        noted = (self._store.meta(found.key) or {}).get("inputs", {}) if self._store else {}
        return len(here) < len(noted) and all(noted.get(name) == digest for name, digest in here.items())


def inputs_of(study: Study, arm: Arm, params: Params) -> dict[str, str]:
    """What the arm reads from the machine, each with a hash of its contents: data sets and the files of ``reads=``."""
    return fingerprints(arm.requirements(params), arm.files(params, study.folder))


def inputs_digest(inputs: Mapping[str, str]) -> str:
    """What stands for the inputs in a unit's key; nothing where it has none."""
    text = json.dumps(inputs, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest() if inputs else ""


def _shared(found: StoredRange, seeds: tuple[int, ...]) -> int:
    return min(found.last, seeds[-1]) - max(found.first, seeds[0])


def _units(
    study: Study,
    arm: Arm,
    point: dict[str, Any],
    params: Params,
    seeds: Iterable[int],
    origin: Origin,
    shelf: _Shelf,
) -> list[Unit]:
    view = ParamsView(params, arm.read)
    size = arm.chunk or chunk_size(arm.working_set(view) if arm.working_set else None, origin.device)
    code = origin.code.version
    address = {
        "arm": arm.name,
        "point": point,
        "params": view.used(),
        "device": origin.device,
        "dtype": arm.dtype,
        "code": code,
    }
    text = json.dumps(address, sort_keys=True, default=str)
    hashed = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    dump = params.model_dump(mode="json")
    inputs = inputs_digest(inputs_of(study, arm, params))
    made: list[Unit] = []
    for chunk in chunks(list(seeds), size):
        unit = Unit(study.name, arm.name, point, chunk, dump, origin.device, arm.dtype, hashed, inputs, code, chunk)
        made += shelf.cover(unit, arm, params)
    return made


def _points(arm: Arm, params: Params, request: Request) -> list[dict[str, Any]]:
    """The points of the arm's grid that the request asks for: all, or those that ``--point`` names."""
    chosen = arm.points(params)
    for name, value in request.point.items():
        chosen = [point for point in chosen if name in point and _is(point[name], value)]
    return chosen


def _is(value: Any, text: str) -> bool:
    """Whether a value of a grid is what somebody wrote."""
    return str(value) == text or (isinstance(value, bool) and str(value).lower() == text.lower())


def _no_such_point(study: Study, names: list[str], params: Params, request: Request) -> UserError:
    grids = [point for name in names for point in study.arms[name].points(params)]
    for name, value in request.point.items():
        if not any(name in point for point in grids):
            return unknown("column of the chosen arms' grids", name, dict.fromkeys(n for point in grids for n in point))
        allowed = dict.fromkeys(str(point[name]) for point in grids if name in point)
        if value not in allowed:
            return unknown(f"value of '{name}'", value, allowed)
    asked = " ".join(f"--point {name}={value}" for name, value in request.point.items())
    return UserError(f"no arm has a point with {asked} together")


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
