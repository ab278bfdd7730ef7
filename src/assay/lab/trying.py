"""Points of arms, computed here and now and stored nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from .backends import check_device, one_thread
from .errors import NotMeasured, UserError, unknown
from .execute import measure
from .measurements import Measurements
from .params import Params
from .planning import make_plan
from .recorder import Recorder
from .requirements import missing_requirement
from .study import Study
from .units import Request, Unit


def tried(study: Study, arm: str, request: Request) -> Measurements:
    """The measurements of the first point that the request leaves."""
    check_device(request.device)
    if arm not in study.arms:
        raise unknown("arm", arm, study.arms)
    unit = _first_unit(study, arm, request)
    with one_thread():
        recorder = measure(study, unit)
    return assembled(study, [(unit, recorder)], request, settled=False)


def assembled(
    study: Study, measured: Sequence[tuple[Unit, Recorder]], request: Request, *, settled: bool = True
) -> Measurements:
    """What units recorded, as claims and figures see a run. ``settled`` says that the arms ran whole."""

    def arrays(key: str, where: Mapping[str, Any]) -> list[tuple[list[int], np.ndarray[Any, Any]]]:
        return [
            (list(unit.seeds), recorder.arrays[key])
            for unit, recorder in measured
            if key in recorder.arrays and _matches({"arm": unit.arm, **unit.point}, where)
        ]

    def setting_params(setting: str) -> Params:
        if setting not in study.settings:
            raise NotMeasured(f"the setting '{setting}' was not part of the run")
        return study.resolve(request.preset, request.overrides, setting)

    frames = [recorder.frame().with_columns(arm=pl.lit(unit.arm)) for unit, recorder in measured]
    return Measurements(
        pl.concat(frames, how="diagonal_relaxed"),
        study.resolve(request.preset, request.overrides),
        setting_params=setting_params,
        arrays=arrays,
        notes=[{"arm": unit.arm, **unit.point, **recorder.notes} for unit, recorder in measured],
        paper=study.paper,
        arms=tuple(study.arms),
        settled={unit.arm for unit, _ in measured} if settled else (),
        array_names=lambda where: {
            name
            for unit, recorder in measured
            if _matches({"arm": unit.arm, **unit.point}, where)
            for name in recorder.arrays
        },
    )


def _matches(labels: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(labels.get(name) == value for name, value in where.items())


def _first_unit(study: Study, arm: str, request: Request) -> Unit:
    """The first point of an arm that the request leaves, with all the seeds that it asks for in one chunk."""
    params = study.resolve(request.preset, request.overrides)
    if reason := missing_requirement(study.arms[arm].requirements(params), request.device):
        raise UserError(f"arm '{arm}' cannot run: {reason}")
    units = make_plan(study, replace(request, arms=arm)).units
    seeds = tuple(range(request.first_seed, request.first_seed + (request.seeds or 1)))
    return replace(units[0], seeds=seeds, takes=seeds)
