"""Sweeps as calls: a claim judged over a grid of parameters, and the maps that are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UserError
from .events import Listener, nobody
from .folders import runs_folder, stored_studies
from .requests import name_of, options_of, outside_of, request_of, study_now
from .store import Store

if TYPE_CHECKING:
    from .phase_map import PhaseMap
    from .study import Study


def sweep(
    study: str | Study,
    vary: Mapping[str, Sequence[Any]],
    claim: str | None = None,
    *,
    preset: str = "smoke",
    seeds: int | None = None,
    first_seed: int = 0,
    set: Mapping[str, Any] | None = None,
    arms: str | Iterable[str] | None = None,
    point: Mapping[str, Any] | None = None,
    budget: float | None = None,
    device: str = "cpu",
    jobs: int | None = None,
    backend: str = "loky",
    address: str | None = None,
    runs: str | Path | None = None,
    studies: str | Path | None = None,
    on_event: Listener = nobody,
) -> PhaseMap:
    """Where does a claim hold? Judge it at every combination of values of one or two parameters.

    Each cell is a stored run of the kind ``sweep``, so that a sweep that was stopped goes on where it was. ``arms`` are
    found by asking the claim unless they are named. With ``budget`` (seconds) the grid is visited from coarse to fine,
    and refined where neighbouring cells disagree.

    >>> lab.sweep("label-granularity", {"classes": [2, 4, 8], "noise": [0.1, 0.2]}, "C5a").figure()
    """
    from .sweep_grid import Asked
    from .sweeps import Sweep, find_claim

    request = request_of(preset, seeds, first_seed, set, arms, point, device)
    if budget is not None and not budget > 0:
        raise UserError(f"a budget of {budget:g} seconds leaves no time for a single cell")
    if both := [name for name in vary if name in request.overrides]:
        raise UserError(f"{both[0]} is both varied and set")
    outside = outside_of(study, studies)
    options = options_of(jobs, backend, address, outside)
    found = study_now(study, outside)
    asked = Asked(found, find_claim(found, claim), dict(vary), request, budget)
    store = Store(runs_folder(runs), found.name)
    return Sweep(asked, store, options, on_event).run()


def maps(study: str | Study | None = None, *, runs: str | Path | None = None) -> list[PhaseMap]:
    """The maps of all sweeps that are stored, of one study when given."""
    from .phase_map import PhaseMap

    folder = runs_folder(runs)
    names = stored_studies(folder, cells=True) if study is None else [name_of(study)]
    return [PhaseMap.from_dict(document) for name in names for document in Store(folder, name).read_maps()]
