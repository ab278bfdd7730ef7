"""Reading a stored run back: its measurements, its verdicts and its small summary."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .discovery import codes_of
from .errors import NotMeasured, UserError
from .files import DamagedUnit
from .findings import Finding
from .interrupts import arrays_ready
from .manifest import Manifest, ManifestUnit
from .measurements import Measurements
from .params import Params, build
from .store import Store
from .study import Study

BUNDLED = "digits"  # the image set that needs no download
LONGEST = 200  # characters for the arms in the name of a saved file, which file systems end at 255
SCHEMA = {"arm": pl.String, "seed": pl.Int64, "step": pl.Int64, "metric": pl.String, "value": pl.Float64}


def load(store: Store, study: Study, manifest: Manifest) -> Measurements:
    """The measurements of one run, in the order of its plan. Runs are never pooled."""
    arrays_ready()
    frames, notes, listed = [], [], []
    for unit in manifest.units:
        if not (store.units / unit.key).exists():
            continue
        try:
            stored = store.read(unit.key)
        except DamagedUnit as damage:
            raise UserError(f"{damage}; run the study again to compute it anew") from None
        part = len(unit.seeds) < len(stored.meta["seeds"])
        frames.append(stored.frame.filter(pl.col("seed").is_in(unit.seeds)) if part else stored.frame)
        listed.append(unit)
        seconds = stored.meta["seconds"] * len(unit.seeds) / len(stored.meta["seeds"])
        notes.append({"arm": unit.arm, **unit.point, **stored.meta["notes"], "seconds": seconds})
    frame = pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema=SCHEMA)
    if "trials" in frame.columns and frame["trials"].is_null().all():
        frame = frame.drop("trials")
    order = [*SCHEMA, *(column for column in frame.columns if column not in (*SCHEMA, "trials"))]
    order += ["trials"] if "trials" in frame.columns else []

    def arrays(key: str, where: Mapping[str, Any]) -> list[tuple[list[int], np.ndarray[Any, Any]]]:
        parts = []
        for unit in listed:
            labels = {"arm": unit.arm, **unit.point}
            if all(labels.get(name) == value for name, value in where.items()):
                stored = store.read(unit.key, arrays=True)
                if key in stored.arrays:
                    rows = [stored.meta["seeds"].index(seed) for seed in unit.seeds]
                    parts.append((list(unit.seeds), stored.arrays[key][rows]))
        return parts

    def array_names(where: Mapping[str, Any]) -> set[str]:
        chosen = [u for u in listed if all({"arm": u.arm, **u.point}.get(n) == v for n, v in where.items())]
        return {name for unit in chosen for name in store.read(unit.key, arrays=True).arrays}

    def setting_params(setting: str) -> Params:
        if setting not in manifest.settings:
            raise NotMeasured(f"the setting '{setting}' was not part of the run")
        return _params(study, manifest.settings[setting])

    return Measurements(
        frame.select(order),
        _params(study, manifest.params),
        setting_params=setting_params,
        arrays=arrays,
        notes=notes,
        paper=study.paper,
        arms=tuple(study.arms),
        settled=_settled(study, manifest, listed),
        array_names=array_names,
    )


def _settled(study: Study, manifest: Manifest, stored: list[ManifestUnit]) -> Collection[str]:
    """The arms of which everything is there that the preset asks for, and that the study's code would measure now."""
    if manifest.set or manifest.point:
        return ()
    there = {unit.key for unit in stored}
    lacking = {unit.arm for unit in manifest.units if unit.key not in there}
    return {unit.arm for unit in manifest.units} - lacking - set(code_changed(study, manifest))


def _params(study: Study, stored: Mapping[str, Any]) -> Params:
    """The parameters that the run had, not those that its preset has by now; one that the study no longer has is
    dropped, so that old runs can still be read."""
    return build(study.model, {name: value for name, value in stored.items() if name in study.model.model_fields})


def findings(store: Store, study: Study, manifest: Manifest) -> list[Finding]:
    return study.judge(load(store, study, manifest), manifest)


def incomplete(store: Store, manifest: Manifest) -> int:
    """How many units of the run are not stored."""
    return sum(not store.has_name(unit.key) for unit in manifest.units)


def code_changed(study: Study, manifest: Manifest) -> list[str]:
    """The arms whose code is no longer that of the run, so that their numbers may not be what they give by now."""
    known = [arm for arm, version in manifest.code.items() if version and arm in study.arms]
    codes = codes_of(study, known)
    return [arm for arm in known if codes[arm].source != manifest.code[arm]]


def parameters_changed(study: Study, manifest: Manifest) -> bool:
    """Whether the same command would now run with other parameters. What is 'auto' was resolved by the machine that
    ran it, and another machine's answer is no change of the study."""
    ran, asked = manifest.params, manifest.set
    defaults = {name: field.default for name, field in study.model.model_fields.items()}
    try:
        given = {**defaults, **study.preset(manifest.preset).values, **asked}
        resolved = {name: ran[name] for name, value in given.items() if value == "auto" and name in ran}
        return bool(ran != study.resolve(manifest.preset, {**asked, **resolved}).model_dump(mode="json"))
    except UserError:  # a parameter was renamed or no longer takes the value
        return True


def check_quotable(store: Store, study: Study, manifest: Manifest) -> None:
    """README and docs quote summaries as what a preset gives, so a run of anything else is refused. Some of its arms
    are a part of it, which is saved under a name that says which."""
    missing = incomplete(store, manifest)
    why = ""
    if manifest.preset == "smoke":
        why = "the preset smoke only shows that everything runs"
    elif manifest.set or manifest.point or manifest.first_seed:
        why = f"it had {manifest.model_copy(update={'asked_arms': None, 'seeds': None}).request_words}"
    elif manifest.seeds and manifest.seeds < study.preset(manifest.preset).seeds:
        why = f"it had --seeds {manifest.seeds}, fewer than the preset"
    elif code_changed(study, manifest):
        why = "the study's code has changed since"
    elif parameters_changed(study, manifest):
        why = "the study's parameters have changed since"
    elif missing:
        why = f"{missing} of its {len(manifest.units)} units are not stored"
    if why:
        run = f"run {manifest.id} of {study.name}"
        raise UserError(f"{run} is not saved, because {why}; save a whole run of the preset as it is")


def _part_name(arms: list[str]) -> str:
    """All arms, or as many as a file's name has room for and what tells the rest apart."""
    name = "+".join(arms)
    if len(name) <= LONGEST:
        return name
    shown = [arm for at, arm in enumerate(arms) if len("+".join(arms[: at + 1])) <= LONGEST - 20]
    return f"{'+'.join(shown)}+{len(arms) - len(shown)}-more-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def save_summary(
    folder: Path, store: Store, study: Study, manifest: Manifest, found: list[Finding], fresh_seeds: str = ""
) -> Path:
    """Write the small JSON under results/ from which README and docs make their tables. Its name has the data sets
    that a fresh clone does not have: what everybody gets and a run on more data lie side by side."""
    check_quotable(store, study, manifest)
    arms = manifest.asked_arms
    part = f".{_part_name(sorted(word.strip() for word in arms.split(',')))}" if arms else ""
    larger = "+".join(name for name in manifest.data if name != BUNDLED)
    rows = [finding.row() for finding in found if not part or finding.judgement.verdict != "not run"]
    judged = [{name: value for name, value in row.items() if name != "run"} for row in rows]
    metas = [store.read(unit.key).meta for unit in manifest.units]
    spent = sum(meta["seconds"] for meta in metas)
    summary = {
        **{key: getattr(manifest, key) for key in ("study", "preset", "set", "params", "data", "device")},
        # Where the units were computed: a run may join units of several machines.
        **{key: "; ".join(dict.fromkeys(meta[key] for meta in metas)) for key in ("versions", "machine")},
        "commit": manifest.commit,
        "code": manifest.code,
        "seeds": manifest.seeds_used,
        "started": manifest.started,
        "seconds": manifest.seconds,
        "unit_seconds": round(spent, 3),
        "computed": manifest.computed,
        "reused": manifest.reused,
        **({"arms": manifest.arms} if part else {}),
        **({"confirmed_on": fresh_seeds} if fresh_seeds else {}),
        "claims": judged,
    }
    path = folder / f"{manifest.study}.{manifest.preset}{f'.{larger}' if larger else ''}{part}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UserError(f"cannot write the summary {path}: {error.strerror or error}") from None
    return path
