"""Studies by name, and stored runs: the one that a question means, all of them, by name, renamed, taken away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import discovery
from .errors import UserError, unknown
from .folders import runs_folder, stored_studies, studies_folder
from .manifest import check_run_name
from .store import Store
from .stored import Run

if TYPE_CHECKING:
    from .study import Study


def open_run(
    study: str | Study,
    run: str | None = None,
    *,
    preset: str | None = None,
    runs: str | Path | None = None,
    studies: str | Path | None = None,
) -> Run:
    """A stored run: the newest complete one of the study, of ``preset`` when given, or the one with the id or name
    ``run``. In place of the study a run's id or name will do.

    >>> lab.open_run("feature-emergence", preset="laptop").claims
    """
    folder, outside = runs_folder(runs), studies_folder(studies)
    name = study if isinstance(study, str) else study.name
    if run is None and isinstance(study, str) and not Store(folder, name).manifest_ids():
        for candidate in stored_studies(folder):
            if any(name in (m.id, m.name) for m in Store(folder, candidate).readable_manifests()):
                return Run(Store(folder, candidate), Store(folder, candidate).manifest(name), outside)
    return newest_run(name, preset=preset, run=run, runs=folder, studies=outside)[0]


def newest_run(
    study: str,
    *,
    preset: str | None = None,
    run: str | None = None,
    runs: str | Path | None = None,
    studies: str | Path | None = None,
) -> tuple[Run, Run | None]:
    """The run that a question about a study means, and a newer one that is only a part of the preset."""
    folder, outside = runs_folder(runs), studies_folder(studies)
    store = Store(folder, study)
    if run is not None:
        manifest = store.manifest(run)
        if preset not in (None, manifest.preset):
            raise UserError(f"run {run} has the preset {manifest.preset}, not {preset}; leave out --run or --preset")
        return Run(store, manifest, outside), None
    chosen, partial = _newest(store, preset, outside)
    if chosen is None:
        what, option = (f" with preset {preset}", f" --preset {preset}") if preset else ("", "")
        discovery.check_name(study, outside)
        raise UserError(f"no run of '{study}'{what} is stored in {folder}; start one with: assay run {study}{option}")
    return chosen, partial


def runs(
    study: str | Study | None = None, *, runs: str | Path | None = None, studies: str | Path | None = None
) -> list[Run]:
    """All stored runs, of one study when given, oldest first."""
    return all_runs(study, runs_folder(runs), studies_folder(studies))


def all_runs(study: str | Study | None, folder: Path, outside: str | None) -> list[Run]:
    names = stored_studies(folder) if study is None else [study if isinstance(study, str) else study.name]
    stores = [Store(folder, name) for name in names]
    found = [Run(store, manifest, outside) for store in stores for manifest in store.readable_manifests()]
    return sorted(found, key=lambda run: run.id)


def find_run(run: str, *, runs: str | Path | None = None, studies: str | Path | None = None) -> Run:
    """A run by its id, the beginning of it, or its name, whatever its study."""
    known = all_runs(None, runs_folder(runs), studies_folder(studies))
    exact = [each for each in known if run in (each.id, each.manifest.name)]
    found = exact or [each for each in known if run and each.id.startswith(run)]
    found = found or _cells(run, runs_folder(runs), studies_folder(studies))
    if not found:
        raise unknown("run", run, [each.manifest.name or each.id for each in known])
    if len(found) > 1 and not exact:
        raise UserError(f"'{run}' begins the ids of {len(found)} runs; write more of the one that is meant")
    return found[-1]


def _cells(run: str, folder: Path, outside: str | None) -> list[Run]:
    """The cell of a sweep that has this id."""
    stores = [Store(folder, name) for name in stored_studies(folder, cells=True)]
    return [Run(store, store.manifest(run), outside) for store in stores if run in store.manifest_ids(cells=True)]


def rename_run(run: str, name: str, *, runs: str | Path | None = None) -> Run:
    """Give a stored run a name to find it by; an empty one takes its name away."""
    found = find_run(run, runs=runs)
    if name != found.manifest.name:
        check_free(name, runs_folder(runs))
    found.manifest.name = name
    found.store.write_manifest(found.manifest)
    return found


def check_free(name: str, folder: Path) -> None:
    """Refuse a name that a run cannot have, or that another has."""
    check_run_name(name)
    taken = [run.id for run in all_runs(None, folder, None) if name and run.manifest.name == name]
    if taken:
        raise UserError(f"run {taken[0]} is already called '{name}'")


def mark_interrupted(run: str, *, runs: str | Path | None = None) -> Run:
    """Say of a stored run that it was interrupted, where the process that ran it is gone and left it ``running``. The
    same request goes on where it was."""
    found = find_run(run, runs=runs)
    if found.manifest.status == "running":
        found.manifest.status = "interrupted"
        found.store.write_manifest(found.manifest)
    return found


def has_study(name: str, *, studies: str | Path | None = None) -> bool:
    """Whether there is likely to be a study of this name; nothing is loaded to find out."""
    return discovery.may_hold(name, studies_folder(studies))


def find_study(name: str, *, studies: str | Path | None = None) -> Study:
    """A study as its files are now, by its name: its parameters, presets, arms and claims."""
    return discovery.find(name, studies_folder(studies))


def remove_run(run: str, *, runs: str | Path | None = None) -> int:
    """Take a stored run away, with the units that no other run lists; returns the bytes that are free again."""
    found = find_run(run, runs=runs)
    return found.store.remove_run(found.id)


def _newest(store: Store, preset: str | None, outside: str | None) -> tuple[Run | None, Run | None]:
    """The newest complete run of a preset as it is, and a newer one that is something else: a part of it, or not
    finished. Where no preset is named, one of ``smoke`` stands back behind any other. Without a complete run the newest
    of all stands in its place."""
    latest: Run | None = None
    smoke: tuple[Run, Run | None] | None = None
    for place, id in enumerate(reversed(store.manifest_ids())):
        try:
            run = Run(store, store.manifest(id), outside)
        except UserError:
            if place == 0:
                raise
            continue  # an older run that cannot be read stands in its own way alone
        if preset not in (None, run.manifest.preset) or run.manifest.kind != "run":
            continue
        if run.manifest.whole and run.manifest.status == "complete":
            if preset is not None or run.manifest.preset != "smoke":
                return run, latest
            smoke = smoke or (run, latest)
        latest = latest or run
    return smoke or (latest, None)
