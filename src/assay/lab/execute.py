"""Executing one unit, in whichever process it landed."""

from __future__ import annotations

import contextlib
import platform
import re
import subprocess
import time
import tomllib
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

import assay

from .backends import default_jobs, prepare_process
from .discovery import find
from .params import ParamsView
from .plan import Unit
from .recorder import Recorder
from .requirements import data_fingerprints
from .store import Payload
from .study import Study


@dataclass(frozen=True)
class Outcome:
    """A finished unit: its payload, or the error that stopped it."""

    unit: Unit
    payload: Payload | None
    seconds: float
    latest: tuple[str, float] | None = None
    error: str = ""
    trace: str = ""


def execute(unit: Unit, outside: str | None, watch: Callable[[str, float], None] | None = None) -> Outcome:
    """Run the unit's arm. An exception becomes an Outcome with its traceback, so that the other units go on."""
    prepare_process()
    started = time.perf_counter()
    try:
        recorder = measure(unit, outside, watch)
        seconds = time.perf_counter() - started
        frame = recorder.frame().with_columns(arm=pl.lit(unit.arm))
        payload = Payload.pack(frame, recorder.arrays, _meta(unit, outside, recorder.notes, seconds))
    except Exception as error:
        seconds = time.perf_counter() - started
        message = f"{type(error).__name__}: {error}"
        return Outcome(unit, None, seconds, error=message, trace=traceback.format_exc())
    latest = frame.row(-1, named=True)
    return Outcome(unit, payload, seconds, (latest["metric"], latest["value"]))


def measure(unit: Unit, outside: str | None, watch: Callable[[str, float], None] | None = None) -> Recorder:
    """The measurements of a unit, without storing them."""
    import torch

    from assay.training.seeds import Seeds

    study = find(unit.study, outside)
    arm = study.arms[unit.arm]
    params = ParamsView(study.model(**unit.params), arm.uses)
    recorder = Recorder(unit.seeds, columns=unit.point, watch=watch)
    seeds = Seeds(unit.seeds, unit.device, getattr(torch, unit.dtype))
    arm.function(params, seeds, recorder, **unit.point)
    return recorder


def data_of(study: Study, unit: Unit) -> dict[str, str]:
    """The data sets that the unit's arm reads, each with a hash of its files as they are here."""
    return data_fingerprints(study.arms[unit.arm].requirements(study.model(**unit.params)))


def _meta(unit: Unit, outside: str | None, notes: dict[str, Any], seconds: float) -> dict[str, Any]:
    return {
        "study": unit.study,
        "arm": unit.arm,
        "point": dict(unit.point),
        "seeds": list(unit.seeds),
        "params": dict(unit.params),
        "device": unit.device,
        "dtype": unit.dtype,
        "notes": notes,
        "data": data_of(find(unit.study, outside), unit),
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
    return commit if project.get("project", {}).get("name") == "assay" else "not a checkout"


def _git(folder: Path, *words: str) -> str:
    answer = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=5, check=True)
    return answer.stdout
