"""Reading a stored run back: its measurements, its verdicts and its small summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .claims import Finding
from .errors import UserError
from .measurements import Measurements
from .params import build
from .store import DamagedUnit, Store
from .study import Study

_SCHEMA = {"arm": pl.String, "seed": pl.Int64, "step": pl.Int64, "metric": pl.String, "value": pl.Float64}


def pick_manifest(store: Store, study: str, *, preset: str | None, run: str | None) -> dict[str, Any]:
    """The newest manifest, or the one that was asked for; a study without any is bad input."""
    if run is not None:
        return store.manifest(run)
    manifest = store.newest(preset)
    if manifest is None:
        what = f" with preset {preset}" if preset else ""
        where = store.root.parent
        raise UserError(f"no run of '{study}'{what} is stored in {where}; start one with: assay run {study}")
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

    # The parameters that the run had, not those that its preset has by now.
    return Measurements(
        frame.select(order),
        build(study.model, manifest["params"]),
        setting_params=lambda setting: build(study.model, manifest["settings"][setting]),
        arrays=arrays,
        notes=notes,
        paper=study.paper,
    )


def findings(store: Store, study: Study, manifest: Mapping[str, Any]) -> list[Finding]:
    measurements = load(store, study, manifest)
    return study.judge(measurements, preset=manifest["preset"], overrides=manifest["set"])


def incomplete(store: Store, manifest: Mapping[str, Any]) -> int:
    """How many units of the run are not stored."""
    return sum(not (store.units / unit["key"]).exists() for unit in manifest["units"])


def save_summary(folder: Path, manifest: Mapping[str, Any], found: list[Finding]) -> Path:
    """Write the small JSON under results/ from which README and docs make their tables."""
    summary = {
        **{key: manifest[key] for key in ("study", "preset", "set", "seeds", "device", "versions", "machine")},
        "started": manifest["started"],
        "seconds": manifest.get("seconds"),
        "computed": manifest.get("computed"),
        "reused": manifest.get("reused"),
        "claims": [finding.row() for finding in found],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{manifest['study']}.{manifest['preset']}.json"
    path.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    return path
