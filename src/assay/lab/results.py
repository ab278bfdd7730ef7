"""Reading a stored run back: its measurements, its verdicts and its small summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .claims import Finding
from .code_version import code_version
from .errors import NotMeasured, UserError
from .measurements import Measurements
from .params import Params, build
from .store import DamagedUnit, Store
from .study import Study

_SCHEMA = {"arm": pl.String, "seed": pl.Int64, "step": pl.Int64, "metric": pl.String, "value": pl.Float64}


def pick_manifest(store: Store, study: str, *, preset: str | None, run: str | None) -> dict[str, Any]:
    """The newest manifest, or the one that was asked for; a study without any is bad input."""
    if run is not None:
        named = store.manifest(run)
        if preset not in (None, named["preset"]):
            raise UserError(f"run {run} has the preset {named['preset']}, not {preset}; leave out --run or --preset")
        return named
    manifest = store.newest(preset)
    if manifest is None:
        what, option = (f" with preset {preset}", f" --preset {preset}") if preset else ("", "")
        where = store.root.parent
        raise UserError(f"no run of '{study}'{what} is stored in {where}; start one with: assay run {study}{option}")
    return manifest


def load(store: Store, study: Study, manifest: Mapping[str, Any]) -> Measurements:
    """The measurements of one run, in the order of its plan. Runs are never pooled."""
    frames, notes, listed = [], [], []
    for unit in manifest["units"]:
        if not (store.units / unit["key"]).exists():
            continue
        try:
            stored = store.read(unit["key"])
        except DamagedUnit as damage:
            raise UserError(f"{damage}; run the study again to compute it anew") from None
        frames.append(stored.frame)
        listed.append(unit)
        notes.append({"arm": unit["arm"], **unit["point"], **stored.meta["notes"], "seconds": stored.meta["seconds"]})
    frame = pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema=_SCHEMA)
    order = [*_SCHEMA, *(column for column in frame.columns if column not in _SCHEMA)]

    def arrays(key: str, where: Mapping[str, Any]) -> list[tuple[list[int], np.ndarray[Any, Any]]]:
        parts = []
        for unit in listed:
            labels = {"arm": unit["arm"], **unit["point"]}
            if all(labels.get(name) == value for name, value in where.items()):
                stored = store.read(unit["key"], arrays=True).arrays
                if key in stored:
                    parts.append((list(unit["seeds"]), stored[key]))
        return parts

    def setting_params(setting: str) -> Params:
        if setting not in manifest["settings"]:
            raise NotMeasured(f"the setting '{setting}' was not part of the run")
        return _params(study, manifest["settings"][setting])

    return Measurements(
        frame.select(order),
        _params(study, manifest["params"]),
        setting_params=setting_params,
        arrays=arrays,
        notes=notes,
        paper=study.paper,
    )


def _params(study: Study, stored: Mapping[str, Any]) -> Params:
    """The parameters that the run had, not those that its preset has by now; one that the study no longer has is
    dropped, so that old runs can still be read."""
    return build(study.model, {name: value for name, value in stored.items() if name in study.model.model_fields})


def findings(store: Store, study: Study, manifest: Mapping[str, Any]) -> list[Finding]:
    measurements = load(store, study, manifest)
    return study.judge(measurements, preset=manifest["preset"], overrides=manifest["set"])


def incomplete(store: Store, manifest: Mapping[str, Any]) -> int:
    """How many units of the run are not stored."""
    return sum(not (store.units / unit["key"]).exists() for unit in manifest["units"])


def seeds_used(manifest: Mapping[str, Any]) -> int:
    """How many different seeds the run's units have; an arm or a setting may have fewer."""
    return len({seed for unit in manifest["units"] for seed in unit["seeds"]})


def asked_seeds(study: Study, manifest: Mapping[str, Any]) -> int | None:
    """What the run's --seeds said. A manifest without preset_seeds is an old one, which kept the number in use."""
    asked: int | None = manifest["seeds"]
    if "preset_seeds" in manifest:
        return asked
    return None if asked == study.preset(manifest["preset"]).seeds else asked


def asked_arms(study: Study, manifest: Mapping[str, Any]) -> str | None:
    """What the run's --arms said; for an old manifest, which did not keep it, what chooses the arms that ran."""
    if "asked_arms" in manifest:
        asked: str | None = manifest["asked_arms"]
        return asked
    return (
        None
        if set(manifest["arms"]) == study.usual_arms(manifest["preset"]) - set(manifest["skipped"])
        else ",".join(manifest["arms"])
    )


def preset_words(manifest: Mapping[str, Any]) -> str:
    """The preset of a run, and the parameters that it had instead."""
    changed = ", ".join(f"{name}={value}" for name, value in manifest["set"].items())
    return f"preset {manifest['preset']}{f' with {changed}' if changed else ''}"


def heading(study: Study, manifest: Mapping[str, Any]) -> str:
    """A run in words: its study and preset, and whatever it had that the preset does not say."""
    parts = [f"{study.name}, {preset_words(manifest)}"]
    if arms := asked_arms(study, manifest):
        parts.append(f"--arms {arms}")
    if seeds := asked_seeds(study, manifest):
        parts.append(f"--seeds {seeds}")
    return " ".join(parts)


def code_changed(study: Study, manifest: Mapping[str, Any]) -> bool:
    """Whether the study's code is no longer that of the run, so that its numbers may not be what it gives by now."""
    return bool(manifest.get("code", "")) and manifest["code"] != code_version(study.module)


def check_quotable(store: Store, study: Study, manifest: Mapping[str, Any]) -> None:
    """README and docs quote summaries as what a preset gives, so a run of anything else is refused. Some of its arms
    are a part of it, which is saved under a name that says which."""
    missing, seeds = incomplete(store, manifest), asked_seeds(study, manifest)
    why = ""
    if manifest["preset"] == "smoke":
        why = "the preset smoke only shows that everything runs"
    elif manifest["set"]:
        why = f"it had --set {' '.join(f'{name}={value}' for name, value in manifest['set'].items())}"
    elif seeds and seeds < study.preset(manifest["preset"]).seeds:
        why = f"it had --seeds {seeds}, fewer than the preset"
    elif code_changed(study, manifest):
        why = "the study's code has changed since"
    elif missing:
        why = f"{missing} of its {len(manifest['units'])} units are not stored"
    if why:
        run = f"run {manifest['id']} of {study.name}"
        raise UserError(f"{run} is not saved, because {why}; save a whole run of the preset as it is")


def save_summary(folder: Path, store: Store, study: Study, manifest: Mapping[str, Any], found: list[Finding]) -> Path:
    """Write the small JSON under results/ from which README and docs make their tables."""
    check_quotable(store, study, manifest)
    arms = asked_arms(study, manifest)
    part = "." + "+".join(sorted(word.strip() for word in arms.split(","))) if arms else ""
    judged = [finding.row() for finding in found if not part or finding.judgement.verdict != "not run"]
    metas = [store.read(unit["key"]).meta for unit in manifest["units"]]
    spent = sum(meta["seconds"] for meta in metas)
    summary = {
        **{key: manifest[key] for key in ("study", "preset", "set", "params", "device")},
        # Where the units were computed: a run may join units of several machines.
        **{key: "; ".join(dict.fromkeys(meta[key] for meta in metas)) for key in ("versions", "machine")},
        "commit": manifest["commit"],
        "code": manifest.get("code", ""),
        "seeds": seeds_used(manifest),
        "started": manifest["started"],
        "seconds": manifest.get("seconds"),
        "unit_seconds": round(spent, 3),
        "computed": manifest.get("computed"),
        "reused": manifest.get("reused"),
        **({"arms": manifest["arms"]} if part else {}),
        "claims": judged,
    }
    path = folder / f"{manifest['study']}.{manifest['preset']}{part}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UserError(f"cannot write the summary {path}: {error.strerror or error}") from None
    return path
