"""What a call asks for, checked and in the engine's words: a study as its files are now, a request, a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import discovery
from .errors import UserError
from .folders import studies_folder
from .store import Store

if TYPE_CHECKING:
    from .dispatch import Options
    from .planning import Plan
    from .study import Study
    from .units import Request


def name_of(study: str | Study) -> str:
    return study if isinstance(study, str) else study.name


def study_now(study: str | Study, outside: str | None) -> Study:
    """The study as its files are now, also where an object was given that may be older."""
    return discovery.find(study if isinstance(study, str) else study.name, outside)


def outside_of(study: str | Study, studies: str | Path | None) -> str | None:
    """The folder in which a study is looked for; that of a study's object is its own."""
    if isinstance(study, str) or studies is not None:
        return studies_folder(studies)
    if study.folder is None:
        raise UserError(
            f"the study '{study.name}' was made in this process, and units travel by name: keep it in a folder with a "
            "study.py and say studies=FOLDER"
        )
    return studies_folder(None) if study.module.startswith("assay.") else str(study.folder.parent)


def options_of(jobs: int | None, backend: str, address: str | None, outside: str | None, name: str = "") -> Options:
    """How a run or a sweep is carried out, checked before anything is looked at."""
    from .clusters import check_backend
    from .dispatch import Options

    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs} is not allowed: at least one unit must run at a time")
    check_backend(backend, address)
    return Options(jobs, backend, address, outside, name)


def planned(study: Study, request: Request, store: Store) -> Plan:
    from .planning import make_plan

    return make_plan(study, request, store)


def request_of(
    preset: str,
    seeds: int | None,
    first_seed: int,
    set: Mapping[str, Any] | None,
    arms: str | Iterable[str] | None,
    point: Mapping[str, Any] | None,
    device: str,
    *,
    stored: bool = False,
) -> Request:
    from .backends import name_device
    from .units import Request

    chosen = arms if isinstance(arms, str) or arms is None else ",".join(arms)
    if chosen is not None and not chosen.strip(" ,+"):
        raise UserError("--arms names no arm; leave it out for all of them")
    if set is not None and not isinstance(set, Mapping):
        raise UserError(f"set takes a mapping of parameters to values, not {set!r}")
    for name, number in (("seeds", seeds), ("first_seed", first_seed)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise UserError(f"{name} takes a whole number, not {number!r}")
    where = {name: str(value) for name, value in (point or {}).items()}
    changed = {name: value.item() if hasattr(value, "item") else value for name, value in (set or {}).items()}
    return Request(preset, changed, seeds, chosen, name_device(device), where, first_seed, stored)
