"""Executing one unit, in whichever process it landed."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import subprocess
import time
import tomllib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

import assay

from .backends import default_jobs, prepare_worker
from .code_version import ArmCode
from .discovery import codes_of, find
from .divergence import diverged
from .errors import position_of
from .params import ParamsView
from .planning import inputs_digest, inputs_of
from .recorder import Recorder
from .store import Payload
from .study import Study
from .units import Unit


@dataclass(frozen=True)
class Outcome:
    """A finished unit: its payload, or the error that stopped it."""

    unit: Unit
    payload: Payload | None
    seconds: float
    latest: tuple[str, float] | None = None
    error: str = ""
    trace: str = ""
    too_large: bool = False  # it ran out of memory: fewer seeds at once may fit
    diverged: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Place:
    """Where a unit is computed: the folder of studies outside the package, the folder for its checkpoints, and who
    hears of its progress. ``notes`` is where a worker leaves word of it instead."""

    outside: str | None = None
    checkpoints: Path | None = None
    watch: Callable[[str, float], None] | None = None
    advance: Callable[[float, float], None] | None = None
    notes: Path | None = None


def execute_in_worker(unit: Unit, place: Place) -> Outcome:
    """Run a unit in a process that was started for such work."""
    prepare_worker()
    notes = ProgressNotes(place.notes / unit.key) if place.notes else None
    try:
        return execute(unit, replace(place, watch=notes.watch, advance=notes.advance) if notes else place)
    finally:
        if notes:
            notes.remove()
        if unit.device == "cuda":  # what this process keeps for later is what those beside it lack now
            _empty_cache()


def execute(unit: Unit, place: Place) -> Outcome:
    """Run the unit's arm. An exception becomes an Outcome with its traceback, so that the other units go on."""
    started = time.perf_counter()
    try:
        study = find(unit.study, place.outside)
        code = codes_of(study, [unit.arm])[unit.arm]
        if code.version != unit.code:
            where = f"{platform.node() or 'the worker'} ({Path(assay.__file__).parent})"
            raise OtherCode(
                f"the code of this arm, or a package that it uses, is another one on {where} than where the run was "
                "planned; bring both to the same state and run again"
            )
        inputs = _inputs(study, unit)
        recorder = measure(study, unit, place)
        seconds = time.perf_counter() - started
        _inputs(study, unit)  # once more: what was exchanged meanwhile was not, or not all, what the arm read
        frame = recorder.frame().with_columns(arm=pl.lit(unit.arm))
        lost = diverged(frame)
        meta = {**_meta(unit, code, inputs, recorder.notes, seconds), "diverged": lost}
        payload = Payload.pack(frame, recorder.arrays, meta)
    except Exception as error:
        seconds = time.perf_counter() - started
        message = f"{type(error).__name__}: {error}{position_of(error)}"
        trace = traceback.format_exc()
        large = out_of_memory(error)
        if large:
            _give_memory_back(error)
        return Outcome(unit, None, seconds, error=message, trace=trace, too_large=large)
    latest = frame.row(-1, named=True)
    return Outcome(unit, payload, seconds, (latest["metric"], latest["value"]), diverged=tuple(lost))


def out_of_memory(error: BaseException) -> bool:
    """Whether a device or the machine had too little memory for a unit, which a part of its seeds may not need."""
    import torch

    # CUDA's own libraries and contexts take memory beside torch's allocator, and their errors are of other classes.
    words = ("_STATUS_ALLOC_FAILED", "CUDA error: out of memory", "DefaultCPUAllocator: can't allocate memory")
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(word in str(error) for word in words)


def _give_memory_back(error: BaseException) -> None:
    """Let go of what the frames of a failed unit hold, so that the next one finds the device as it was."""
    traceback.clear_frames(error.__traceback__)
    _empty_cache()


def _empty_cache() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


class OtherCode(RuntimeError):
    """A unit would be computed by other code, or from other files, than those it is stored under."""


def measure(study: Study, unit: Unit, place: Place | None = None) -> Recorder:
    """The measurements of a unit, without storing them."""
    import torch

    from assay.training.seeds import Seeds

    place = place or Place()
    arm = study.arms[unit.arm]
    params = ParamsView(study.model(**unit.params), arm.read)
    # A worker elsewhere that does not see the store's folder has no place for them.
    shared = place.checkpoints is not None and place.checkpoints.parent.is_dir()
    room = place.checkpoints / unit.key if place.checkpoints and shared else None
    recorder = Recorder(unit.seeds, columns=unit.point, watch=place.watch, advance=place.advance, room=room)
    seeds = Seeds(unit.seeds, unit.device, getattr(torch, unit.dtype))
    arm.function(params, seeds, recorder, **unit.point)
    return recorder


class ProgressNotes:
    """A small file in which a worker says how far its unit is, for the process that shows it; at most one a second."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.progress")
        self._word: dict[str, Any] = {}
        self._written = 0.0

    def watch(self, metric: str, value: float) -> None:
        self._word |= {"metric": metric, "value": value}
        self._write()

    def advance(self, done: float, total: float) -> None:
        self._word |= {"done": done, "total": total}
        self._write()

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        if time.monotonic() - self._written < 1.0:
            return
        self._written = time.monotonic()
        with contextlib.suppress(OSError):  # what nobody can see decides nothing
            temporary = self._path.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(self._word))
            temporary.replace(self._path)


def _inputs(study: Study, unit: Unit) -> dict[str, str]:
    found = inputs_of(study, study.arms[unit.arm], study.model(**unit.params))
    if inputs_digest(found) != unit.inputs:
        raise OtherCode("the files that this arm reads are not those that the run was planned with; run again")
    return found


def _meta(unit: Unit, code: ArmCode, inputs: dict[str, str], notes: dict[str, Any], seconds: float) -> dict[str, Any]:
    return {
        "study": unit.study,
        "arm": unit.arm,
        "point": dict(unit.point),
        "seeds": list(unit.seeds),
        "params": dict(unit.params),
        "device": unit.device,
        "dtype": unit.dtype,
        "code": {"files": dict(code.files), "packages": dict(code.packages)},
        "notes": notes,
        "inputs": inputs,
        "seconds": round(seconds, 3),
        **environment(unit.device),
    }


@cache
def _environment(device: str) -> tuple[tuple[str, str], ...]:
    import torch

    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "polars"))
    machine = torch.cuda.get_device_name() if device == "cuda" and torch.cuda.is_available() else _processor()
    return (
        ("versions", f"assay {assay.__version__}, Python {platform.python_version()}, {versions}"),
        ("machine", machine),
        ("commit", _commit()),
    )


def environment(device: str) -> dict[str, str]:
    """Versions, machine and commit, for manifests and unit metadata."""
    return dict(_environment(device))


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The model of the processor and its cores; on Linux platform.processor() knows the architecture at most."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        names = re.findall(r"^model name\s*:\s*(.+?)\s*$", cpuinfo.read_text(), re.MULTILINE)
        model = names[0] if names else model
    return f"{model}, {default_jobs()} cores"


def _commit(here: Path = Path(__file__).parent) -> str:
    """The commit of the checkout that the package lies in, when that is a checkout of this project."""
    try:
        top, commit = _git(here, "rev-parse", "--show-toplevel", "HEAD").splitlines()
        project = tomllib.loads((Path(top) / "pyproject.toml").read_text())
        if _git(here, "status", "--porcelain", "--", str(here.parent)):
            commit += " with changes"
    except (OSError, subprocess.SubprocessError, ValueError):
        return "not a checkout"
    return commit if project.get("project", {}).get("name") == "assay-lab" else "not a checkout"


def _git(folder: Path, *words: str) -> str:
    answer = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=5, check=True)
    return answer.stdout
