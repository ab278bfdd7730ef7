"""Everything that the command line does, as calls: run a study, look ahead, open what is stored, judge, report, try."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import discovery
from .comparison import Comparison
from .comparison import compare as _compare
from .confirmation import FIRST_SEED, Confirmation, repeated
from .errors import UserError
from .events import Listener, nobody
from .folders import runs_folder, studies_folder
from .forecast import Forecast
from .opening import (
    check_free,
    find_run,
    find_study,
    has_study,
    mark_interrupted,
    newest_run,
    open_run,
    remove_run,
    rename_run,
    runs,
)
from .requests import options_of, outside_of, planned, request_of, study_now
from .store import Store
from .stored import Findings, Run
from .sweeping import maps, sweep

if TYPE_CHECKING:
    from .measurements import Measurements
    from .outline import Outline
    from .study import Study

__all__ = [
    "claims",
    "compare",
    "confirm",
    "find_run",
    "find_study",
    "has_study",
    "maps",
    "mark_interrupted",
    "newest_run",
    "open_run",
    "outlines",
    "plan",
    "remove_run",
    "rename_run",
    "report",
    "run",
    "runs",
    "sweep",
    "try_arm",
    "verdict_counts",
]


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
    stored: bool = False,
    runs: str | Path | None = None,
    studies: str | Path | None = None,
    on_event: Listener = nobody,
) -> Run:
    """Run a study: what is stored is reused, the rest is computed and stored.

    ``set`` changes parameters, ``arms`` and ``point`` choose a part, ``seeds`` and ``first_seed`` the seeds; ``name``
    is a name to find the run by. With ``stored`` nothing is computed: what machines with other devices and packages
    have left in the folder is joined into one run. ``on_event`` hears how it goes, at times from another thread. A unit
    that fails stops no other: ``run.manifest.failures`` tells of it.

    >>> run = lab.run("feature-emergence", preset="smoke")
    >>> run.measurements, run.claims, run.figure("accuracy")
    """
    from . import runner
    from .joining import check_all_stored
    from .planning import refuse_idle_overrides

    request = request_of(preset, seeds, first_seed, set, arms, point, device, stored=stored)
    outside = outside_of(study, studies)
    options = options_of(jobs, backend, address, outside, name)
    found = study_now(study, outside)
    store = Store(runs_folder(runs), found.name)
    check_free(name, store.runs)
    refuse_idle_overrides(found, request)
    made = planned(found, request, store)
    if stored:
        check_all_stored(made, store)
    result = runner.run(made, store, options, on_event)
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
    stored: bool = False,
    runs: str | Path | None = None,
    studies: str | Path | None = None,
) -> Forecast:
    """What ``run`` with the same arguments would compute, what it would reuse, and the reason for each arm.

    >>> lab.plan("feature-emergence", preset="smoke", seeds=16)
    """
    from .planning import refuse_idle_overrides
    from .reasons import expected_seconds, reasons

    request = request_of(preset, seeds, first_seed, set, arms, point, device, stored=stored)
    found = study_now(study, outside_of(study, studies))
    store = Store(runs_folder(runs), found.name)
    refuse_idle_overrides(found, request)
    made = planned(found, request, store)
    return Forecast(made, reasons(made, store), expected_seconds(made, store))


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


def compare(
    a: str | Run, b: str | Run, *, runs: str | Path | None = None, studies: str | Path | None = None
) -> Comparison:
    """Two runs side by side: verdicts that turned, estimates that moved, what differs in parameters and code."""
    first, second = (item if isinstance(item, Run) else find_run(item, runs=runs, studies=studies) for item in (a, b))
    return _compare(first, second)


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
    outside = outside_of(study, studies)
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

    request = request_of(preset, seeds, first_seed, set, arm, point, device)
    return tried(study_now(study, outside_of(study, studies)), arm, request)


def outlines(studies: str | Path | None = None) -> list[Outline]:
    """All studies in outline: names, questions, claims, costs."""
    return discovery.outlines(studies_folder(studies))


def verdict_counts(found: Sequence[Any]) -> str:
    """``12 holds, 3 fails`` of findings."""
    return ", ".join(f"{count} {verdict}" for verdict, count in Findings(found).counts.items())
