"""Everything that the command line does, as calls: run a study, look ahead, open what is stored, judge, report, try."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import discovery
from .comparison import Comparison
from .comparison import compare as _compare
from .confirmation import FIRST_SEED, Confirmation, repeated
from .errors import UserError, unknown
from .events import Listener, nobody
from .folders import runs_folder, stored_studies, studies_folder
from .forecast import Forecast
from .store import Store
from .stored import Findings, Run

if TYPE_CHECKING:
    from .measurements import Measurements
    from .outline import Outline
    from .phase_map import PhaseMap
    from .planning import Plan, Request
    from .study import Study


def run(
    study: str | Study,
    preset: str = "laptop",
    *,
    seeds: int | None = None,
    first_seed: int = 0,
    set: Mapping[str, Any] | None = None,
    arms: str | Iterable[str] | None = None,
    point: Mapping[str, Any] | None = None,
    device: str = "cpu",
    jobs: int | None = None,
    backend: str = "loky",
    address: str | None = None,
    name: str = "",
    runs: str | Path | None = None,
    studies: str | Path | None = None,
    on_event: Listener = nobody,
) -> Run:
    """Run a study: what is stored is reused, the rest is computed and stored.

    ``set`` changes parameters, ``arms`` and ``point`` choose a part, ``seeds`` and ``first_seed`` the seeds; ``name``
    is a name to find the run by. ``on_event`` hears how it goes, at times from another thread. A unit that fails stops
    no other: ``run.manifest.failures`` tells of it.

    >>> run = lab.run("feature-emergence", preset="smoke")
    >>> run.measurements, run.claims, run.figure("accuracy")
    """
    from . import runner
    from .planning import refuse_idle_overrides

    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs} is not allowed: at least one unit must run at a time")
    if address is not None and backend == "loky":
        raise UserError("--address names a cluster, so say of which kind: --backend ray or --backend dask")
    request = _request(preset, seeds, first_seed, set, arms, point, device)
    outside = _outside(study, studies)
    found = _find(study, outside)
    store = Store(runs_folder(runs), found.name)
    options = runner.Options(jobs, backend, address, outside, name)
    _check_free(name, store.runs)
    refuse_idle_overrides(found, request)
    result = runner.run(_planned(found, request, store), store, options, on_event)
    return Run(store, result.manifest, outside)


_run = run


def plan(
    study: str | Study,
    preset: str = "laptop",
    *,
    seeds: int | None = None,
    first_seed: int = 0,
    set: Mapping[str, Any] | None = None,
    arms: str | Iterable[str] | None = None,
    point: Mapping[str, Any] | None = None,
    device: str = "cpu",
    runs: str | Path | None = None,
    studies: str | Path | None = None,
) -> Forecast:
    """What ``run`` with the same arguments would compute, what it would reuse, and the reason for each arm.

    >>> lab.plan("feature-emergence", preset="smoke", seeds=16)
    """
    from .planning import refuse_idle_overrides
    from .reasons import expected_seconds, reasons

    request = _request(preset, seeds, first_seed, set, arms, point, device)
    found = _find(study, _outside(study, studies))
    store = Store(runs_folder(runs), found.name)
    refuse_idle_overrides(found, request)
    made = _planned(found, request, store)
    return Forecast(made, reasons(made, store), expected_seconds(made, store))


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


def claims(
    study: str | Study,
    run: str | None = None,
    *,
    preset: str | None = None,
    runs: str | Path | None = None,
    studies: str | Path | None = None,
) -> Findings:
    """The verdicts of a stored run: the newest complete one, or the one that is named.

    >>> lab.claims("feature-emergence")["C4a"].judgement.verdict
    """
    return open_run(study, run, preset=preset, runs=runs, studies=studies).claims


def report(
    *what: Run | str,
    out: str | Path = "report",
    formats: Sequence[str] = (),
    results: str | Path | None = None,
    **options: Any,
) -> Path:
    """Write the static site of runs, or of the newest complete runs of studies; returns the path of its index.
    ``formats`` (svg, png, pdf) also writes each figure as these, ``results`` is a folder of summaries to set beside the
    runs; other options are those of ``open_run``."""
    from assay.report import site

    chosen = [item if isinstance(item, Run) else open_run(item, **options) for item in what]
    if not chosen and results is None:
        raise UserError("no run was named to report on")
    wanted = site.parse_formats(",".join(formats)) if formats else ()
    summaries, outside = Path(results) if results is not None else None, studies_folder(options.get("studies"))
    return site.write(chosen, Path(out), formats=wanted, say=lambda sentence: None, results=summaries, studies=outside)


def runs(
    study: str | Study | None = None, *, runs: str | Path | None = None, studies: str | Path | None = None
) -> list[Run]:
    """All stored runs, of one study when given, oldest first."""
    return _all_runs(study, runs_folder(runs), studies_folder(studies))


def _all_runs(study: str | Study | None, folder: Path, outside: str | None) -> list[Run]:
    names = stored_studies(folder) if study is None else [study if isinstance(study, str) else study.name]
    stores = [Store(folder, name) for name in names]
    found = [Run(store, manifest, outside) for store in stores for manifest in store.readable_manifests()]
    return sorted(found, key=lambda run: run.id)


def compare(
    a: str | Run, b: str | Run, *, runs: str | Path | None = None, studies: str | Path | None = None
) -> Comparison:
    """Two runs side by side: verdicts that turned, estimates that moved, what differs in parameters and code."""
    first, second = (item if isinstance(item, Run) else find_run(item, runs=runs, studies=studies) for item in (a, b))
    return _compare(first, second)


def find_run(run: str, *, runs: str | Path | None = None, studies: str | Path | None = None) -> Run:
    """A run by its id, the beginning of it, or its name, whatever its study."""
    known = _all_runs(None, runs_folder(runs), studies_folder(studies))
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
        _check_free(name, runs_folder(runs))
    found.manifest.name = name
    found.store.write_manifest(found.manifest)
    return found


def _check_free(name: str, folder: Path) -> None:
    """Refuse a name that a run cannot have, or that another has."""
    from .manifest import check_run_name

    check_run_name(name)
    taken = [run.id for run in _all_runs(None, folder, None) if name and run.manifest.name == name]
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


def confirm(
    study: str | Study,
    preset: str = "laptop",
    *,
    first_seed: int = FIRST_SEED,
    run: str | None = None,
    device: str = "cpu",
    jobs: int | None = None,
    backend: str = "loky",
    address: str | None = None,
    runs: str | Path | None = None,
    studies: str | Path | None = None,
    on_event: Listener = nobody,
) -> Confirmation:
    """Judge the claims of a stored run (the newest complete one, or the one named ``run``) on as many fresh seeds, from
    ``first_seed`` on, and say which verdicts stand.

    >>> lab.confirm("feature-emergence", preset="laptop")
    """
    outside = _outside(study, studies)
    name = study if isinstance(study, str) else study.name
    first, _ = newest_run(name, preset=preset if run is None else None, run=run, runs=runs, studies=outside)
    manifest = first.manifest
    if manifest.status != "complete":
        raise UserError(f"run {first.id} of {name} is not complete, so there is nothing to confirm yet")
    own = {seed for unit in manifest.units for seed in unit.seeds}
    if not own.isdisjoint(range(first_seed, first_seed + manifest.seeds_used)):
        raise UserError(
            f"run {first.id} has seeds from {min(own)} to {max(own)}; --first-seed {first_seed} is not fresh"
        )
    asked: dict[str, Any] = {
        "seeds": manifest.seeds,
        "first_seed": first_seed,
        "set": manifest.set,
        "arms": manifest.asked_arms,
        "point": manifest.point,
    }
    data = plan(study, manifest.preset, device=device, runs=runs, studies=studies, **asked).plan.data
    if manifest.data and data != manifest.data:
        was, now = " and ".join(manifest.data), " and ".join(data) or "no data set"
        raise UserError(f"run {first.id} of {name} read {was}, and here it would read {now}; see $ASSAY_DATA")
    second = _run(
        study,
        manifest.preset,
        **asked,
        device=device,
        jobs=jobs,
        backend=backend,
        address=address,
        runs=runs,
        studies=studies,
        on_event=on_event,
    )
    return repeated(first, second)


def try_arm(
    study: str | Study,
    arm: str,
    *,
    seeds: int = 3,
    first_seed: int = 0,
    preset: str = "smoke",
    set: Mapping[str, Any] | None = None,
    device: str = "cpu",
    studies: str | Path | None = None,
    **point: Any,
) -> Measurements:
    """Run one point of one arm, here and now, and store nothing. A column of the grid that is left out takes its first
    value.

    >>> lab.try_arm("feature-emergence", "network", setting="parity", seeds=3).final("test_accuracy")
    """
    from .trying import tried

    request = _request(preset, seeds, first_seed, set, arm, point, device)
    return tried(_find(study, _outside(study, studies)), arm, request)


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
    from . import runner
    from .sweeps import Asked, Sweep, find_claim

    request = _request(preset, seeds, first_seed, set, arms, point, device)
    if budget is not None and not budget > 0:
        raise UserError(f"a budget of {budget:g} seconds leaves no time for a single cell")
    if both := [name for name in vary if name in request.overrides]:
        raise UserError(f"{both[0]} is both varied and set")
    outside = _outside(study, studies)
    found = _find(study, outside)
    asked = Asked(found, find_claim(found, claim), dict(vary), request, budget)
    store = Store(runs_folder(runs), found.name)
    options = runner.Options(jobs, backend, address, outside)
    return Sweep(asked, store, options, on_event).run()


def maps(study: str | Study | None = None, *, runs: str | Path | None = None) -> list[PhaseMap]:
    """The maps of all sweeps that are stored, of one study when given."""
    from .phase_map import PhaseMap

    folder = runs_folder(runs)
    names = stored_studies(folder, cells=True) if study is None else [_name(study)]
    return [PhaseMap.from_dict(document) for name in names for document in Store(folder, name).read_maps()]


def outlines(studies: str | Path | None = None) -> list[Outline]:
    """All studies in outline: names, questions, claims, costs."""
    return discovery.outlines(studies_folder(studies))


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


def _name(study: str | Study) -> str:
    return study if isinstance(study, str) else study.name


def _find(study: str | Study, outside: str | None) -> Study:
    """The study as its files are now, also where an object was given that may be older."""
    return discovery.find(study if isinstance(study, str) else study.name, outside)


def _outside(study: str | Study, studies: str | Path | None) -> str | None:
    """The folder in which a study is looked for; that of a study's object is its own."""
    if isinstance(study, str) or studies is not None:
        return studies_folder(studies)
    if study.folder is None:
        raise UserError(
            f"the study '{study.name}' was made in this process, and units travel by name: keep it in a folder with a "
            "study.py and say studies=FOLDER"
        )
    return studies_folder(None) if study.module.startswith("assay.") else str(study.folder.parent)


def _planned(study: Study, request: Request, store: Store) -> Plan:
    from .planning import make_plan

    return make_plan(study, request, store)


def _request(
    preset: str,
    seeds: int | None,
    first_seed: int,
    set: Mapping[str, Any] | None,
    arms: str | Iterable[str] | None,
    point: Mapping[str, Any] | None,
    device: str,
) -> Request:
    from .backends import name_device
    from .planning import Request

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
    return Request(preset, changed, seeds, chosen, name_device(device), where, first_seed)


def verdict_counts(found: Sequence[Any]) -> str:
    """``12 holds, 3 fails`` of findings."""
    return ", ".join(f"{count} {verdict}" for verdict, count in Findings(found).counts.items())
