"""What ran, and how: arms, noted choices, parameters, settings and the run itself, from the manifest."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.lab import Arm, Manifest, Measurements, Study
from assay.lab.manifest import ManifestUnit

from .numbers import date, duration, value


@dataclass(frozen=True)
class ArmRow:
    name: str
    description: str
    grid: dict[str, str]
    points: int
    seeds: str
    seconds: str
    left_out: str = ""


@dataclass(frozen=True)
class Choice:
    arm: str
    point: str
    name: str
    value: str


@dataclass(frozen=True)
class Parameter:
    name: str
    value: str
    origin: str
    description: str


def arms(study: Study, measurements: Measurements, manifest: Manifest) -> list[ArmRow]:
    """Every arm of the study, in its order, whether it ran or not."""
    rows = []
    for arm in study.arms.values():
        units = [unit for unit in manifest.units if unit.arm == arm.name]
        if not units:
            reason = _why_left_out(study, arm.name, manifest)
            rows.append(ArmRow(arm.name, arm.description, {}, 0, "", "", reason))
            continue
        seeds: dict[str, int] = {}
        for unit in units:
            seeds[str(unit.point)] = seeds.get(str(unit.point), 0) + len(unit.seeds)
        grid = {name: value(_distinct(u.point[name] for u in units if name in u.point)) for name in _axes(arm, units)}
        spent = sum(note["seconds"] for note in _noted(measurements, arm.name))
        few, many = min(seeds.values()), max(seeds.values())
        counts = str(many) if few == many else f"{few} to {many}"
        rows.append(
            ArmRow(arm.name, arm.description, grid, len(seeds), counts, f"{spent:.1f}" if spent >= 0.1 else "< 0.1")
        )
    return rows


def _noted(measurements: Measurements, arm: str) -> list[dict[str, Any]]:
    """The notes of an arm; none where none of its units is stored."""
    return [note for note in measurements.notes() if note["arm"] == arm]


def choices(study: Study, measurements: Measurements, manifest: Manifest) -> list[Choice]:
    """What the arms noted: tuned values, sizes of data sets. Chunks of seeds that agree are one row."""
    found: list[Choice] = []
    for arm in study.arms.values():
        axes = _axes(arm, [unit for unit in manifest.units if unit.arm == arm.name])
        for note in _noted(measurements, arm.name):
            point = value({name: note[name] for name in axes if name in note})
            chosen = {name: item for name, item in note.items() if name not in ("arm", "seconds", *axes)}
            found += [Choice(arm.name, point, name, value(item)) for name, item in chosen.items()]
    return _distinct(found)


def parameters(study: Study, preset: str, ran: Mapping[str, Any], overrides: Mapping[str, Any]) -> list[Parameter]:
    """The parameters as they were when the run was made, and where each value came from."""
    given = study.presets[preset].values
    rows = []
    for name in sorted(ran, key=lambda name: [*study.model.model_fields, *ran].index(name)):
        field = study.model.model_fields.get(name)
        description = (field.description or "") if field else "no longer a parameter of the study"
        origin = "override" if name in overrides else "preset" if name in given else "default"
        rows.append(Parameter(name, value(ran[name]), origin, description))
    return rows


def settings(study: Study, measurements: Measurements, manifest: Manifest) -> dict[str, list[Parameter]]:
    """What each named setting changes against the parameters of the run."""
    base = measurements.params.model_dump(mode="json")
    changed: dict[str, list[Parameter]] = {}
    for setting in (name for name in study.settings if name in manifest.settings):
        own = measurements.params_of(setting).model_dump(mode="json")
        changed[setting] = [
            Parameter(name, value(chosen), "override" if f"{setting}.{name}" in manifest.set else "setting", "")
            for name, chosen in own.items()
            if chosen != base[name]
        ]
    return changed


def run_facts(study: Study, manifest: Manifest) -> dict[str, str]:
    facts = {
        "command": command(study, manifest),
        "run": manifest.id,
        "started": date(manifest.started),
        "status": manifest.status,
    }
    if manifest.seconds is not None:
        units = f"{manifest.computed} units computed, {manifest.reused} reused from earlier runs"
        facts["time taken"] = f"{duration(manifest.seconds)} ({units})"
    facts["stated cost"] = study.presets[manifest.preset].cost
    return {**facts, **{key: str(getattr(manifest, key)) for key in ("device", "machine", "versions", "commit")}}


def command(study: Study, manifest: Manifest) -> str:
    """The command that makes this run again."""
    words = ["assay", "run", study.name, "--preset", manifest.preset]
    if (seeds := manifest.seeds) is not None:
        words += ["--seeds", str(seeds)]
    for name, chosen in manifest.set.items():
        words += ["--set", f"{name}={chosen}"]
    if arms := manifest.asked_arms:
        words += ["--arms", arms]
    for name, chosen in manifest.point.items():
        words += ["--point", f"{name}={chosen}"]
    if manifest.first_seed:
        words += ["--first-seed", str(manifest.first_seed)]
    if "," in manifest.device:
        words.append("--stored")  # joined from runs on several devices
    elif manifest.device != "cpu":
        words += ["--device", manifest.device]
    return shlex.join(words)


def _axes(arm: Arm, units: Iterable[ManifestUnit]) -> list[str]:
    """The columns of the arm's grid, in its author's order where the manifest, which sorts them, lost it."""
    names = _distinct(name for unit in units for name in unit.point)
    given = list(arm.over) if isinstance(arm.over, Mapping) else [name for point in arm.over for name in point]
    return sorted(names, key=lambda name: given.index(name) if name in given else len(given))


def _why_left_out(study: Study, arm: str, manifest: Manifest) -> str:
    if arm in manifest.skipped:
        return f"skipped: {manifest.skipped[arm]}"
    if study.arms[arm].optional:
        return f"optional; add it with --arms +{arm}"
    if arm in study.presets[manifest.preset].skip:
        return f"not part of the preset {manifest.preset}"
    return "not asked for in this run"


def _distinct(items: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
