"""Maps: every cell is a stored run, judged like any other; the predicted boundary is compared cell by cell."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import pytest

from assay import lab
from assay.lab import discovery, dispatch
from assay.lab.clusters import Workers
from assay.lab.errors import UserError
from assay.lab.events import Said, Started, UnitDone
from assay.lab.execute import environment

FIXTURES = str(Path(__file__).parent / "fixtures")
SIGNALS, THRESHOLDS = [0.5, 1.5, 2.5, 3.5], [1, 2, 3]


def swept(tmp_path, vary=None, claim="C1", **options):
    given = {"signal": SIGNALS, "threshold": THRESHOLDS} if vary is None else vary
    return lab.sweep("mapped", given, claim, runs=tmp_path, studies=FIXTURES, **{"jobs": 1, **options})


def open_cell(tmp_path):
    return lambda cell: lab.open_run("mapped", cell.run, runs=tmp_path, studies=FIXTURES)


def test_cells_are_judged_and_compared_with_the_boundary(tmp_path):
    found = swept(tmp_path)
    assert len(found.cells) == 12
    assert found.unvisited == 0
    for cell in found.cells:
        above = cell.at["signal"] > cell.at["threshold"]
        assert cell.verdict == ("holds" if above else "fails")
        assert cell.estimate == pytest.approx(cell.at["signal"] - cell.at["threshold"], abs=0.05)
        assert (cell.margin > 1) == above
        assert cell.agrees
    assert (found.agreement, found.decided_agreement, len(found.compared)) == (1.0, 1.0, 12)
    assert "100% of 12 cells, 100% of the 12 decided" in repr(found)


def test_a_boundary_that_is_wrong_does_not_agree(tmp_path):
    shifted = swept(tmp_path, {"signal": SIGNALS, "noise": [0.01, 0.02]}, set={"threshold": 3})
    right = [cell for cell in shifted.cells if cell.agrees]
    assert len(right) == 8
    study = discovery.find("mapped", FIXTURES)
    before = study.boundaries["C1"]
    study.boundaries["C1"] = type(before)("C1", before.says, lambda params: params.threshold - params.signal)
    try:
        assert swept(tmp_path, {"signal": SIGNALS, "noise": [0.01, 0.02]}, set={"threshold": 3}).agreement == 0
    finally:
        study.boundaries["C1"] = before


def test_arms_that_the_claim_does_not_read_are_not_run(tmp_path):
    found = swept(tmp_path)
    runs = [lab.open_run("mapped", cell.run, runs=tmp_path, studies=FIXTURES) for cell in found.cells]
    assert {tuple(run.manifest.arms) for run in runs} == {("measured", "threshold")}
    assert {run.manifest.kind for run in runs} == {"sweep"}


def test_a_sweep_hides_no_ordinary_run(tmp_path):
    run = lab.run("mapped", "smoke", runs=tmp_path, studies=FIXTURES)
    swept(tmp_path)
    assert lab.open_run("mapped", runs=tmp_path, studies=FIXTURES).id == run.id
    assert [each.id for each in lab.runs("mapped", runs=tmp_path, studies=FIXTURES)] == [run.id]


def test_the_same_sweep_again_computes_and_writes_nothing_new(tmp_path):
    first = swept(tmp_path)
    cells = sorted((tmp_path / "mapped" / "cells").iterdir())
    again = swept(tmp_path)
    assert [cell.run for cell in again.cells] == [cell.run for cell in first.cells]
    assert sorted((tmp_path / "mapped" / "cells").iterdir()) == cells
    assert len(list((tmp_path / "mapped" / "maps").iterdir())) == 1
    (stored,) = lab.maps("mapped", runs=tmp_path)
    assert stored.to_dict() == first.to_dict()


def test_values_from_a_shell_and_from_a_script_are_one_sweep(tmp_path):
    first = swept(tmp_path, {"signal": ["0.5", "1.5"], "threshold": ["1", "2"]}, set={"noise": "0.02"})
    again = swept(tmp_path, {"signal": [0.5, 1.5], "threshold": [1, 2]}, set={"noise": 0.02})
    assert [cell.run for cell in again.cells] == [cell.run for cell in first.cells]
    assert len(list((tmp_path / "mapped" / "cells").iterdir())) == 4
    assert len(list((tmp_path / "mapped" / "maps").iterdir())) == 1
    assert again.to_dict() == first.to_dict()


def test_a_cell_with_more_seeds_is_another_one(tmp_path):
    assert {cell.seeds for cell in swept(tmp_path, {"signal": [0.5, 1.5]}, seeds=8).cells} == {8}
    assert {cell.seeds for cell in swept(tmp_path, {"signal": [0.5, 1.5]}, seeds=4).cells} == {4}


def test_two_sweeps_at_once_store_a_cell_once(tmp_path):
    axes, meanwhile = {"signal": [0.5, 1.5], "threshold": [1, 2]}, []

    def another(event):
        if isinstance(event, Started) and not meanwhile:
            meanwhile.append(None)
            meanwhile[0] = swept(tmp_path, axes)

    found = swept(tmp_path, axes, on_event=another)
    assert [cell.run for cell in found.cells] == [cell.run for cell in meanwhile[0].cells]
    assert len(list((tmp_path / "mapped" / "cells").iterdir())) == 4


def test_a_stored_map_keeps_the_order_of_its_axes(tmp_path):
    """Its boundary is written in places along the axes, and files sort names."""
    swept(tmp_path, {"threshold": [1, 2, 3], "signal": [0.5, 1.5]})
    (stored,) = lab.maps("mapped", runs=tmp_path)
    assert list(stored.axes) == ["threshold", "signal"] == list(stored.cells[0].at)
    assert {x for x, *_ in stored.segments} != {y for _, y, *_ in stored.segments}
    assert max(max(y, y2) for _, y, _, y2 in stored.segments) <= 1
    old = {name: part for name, part in stored.to_dict().items() if name != "over"}
    assert lab.PhaseMap.from_dict(old).segments == []


def test_a_saved_map_says_where_it_comes_from_and_old_files_are_read(tmp_path):
    found = swept(tmp_path, {"signal": [0.5, 1.5]})
    document = json.loads(found.save(tmp_path / "map.json").read_text())
    (first, *_) = sorted(run.manifest.started for run in map(open_cell(tmp_path), found.cells))
    expected = {**environment("cpu"), "device": "cpu", "started": first}
    assert {name: document[name] for name in expected} == expected
    assert 0 <= document["unit_seconds"] < 60
    again = lab.PhaseMap.from_dict(document)
    assert (again.origin, again.to_dict()) == (found.origin, document)
    old = {name: part for name, part in document.items() if name not in found.origin}
    assert (lab.PhaseMap.from_dict(old).origin, lab.PhaseMap.from_dict(old).to_dict()) == ({}, old)


def test_a_cell_is_found_by_its_id(tmp_path):
    cell = swept(tmp_path, {"signal": [0.5, 1.5]}).cells[0]
    found = lab.find_run(cell.run, runs=tmp_path, studies=FIXTURES)
    assert found.manifest.set == {"signal": 0.5}
    assert found.claims["C1"].judgement.verdict == cell.verdict


def test_removing_a_cell_keeps_what_others_use(tmp_path):
    found = swept(tmp_path)
    lab.run("mapped", "smoke", set={"signal": 0.5}, arms="measured", runs=tmp_path, studies=FIXTURES)
    for cell in found.cells[:2]:
        lab.open_run("mapped", cell.run, runs=tmp_path, studies=FIXTURES).store.remove_run(cell.run)
    assert all(run.missing == 0 for run in lab.runs("mapped", runs=tmp_path, studies=FIXTURES))


def test_values_that_do_not_go_together_are_cells_without_a_run(tmp_path):
    found = swept(tmp_path, {"signal": [1.0, 9.0], "threshold": [3, 9]})
    ((cell,)) = [cell for cell in found.cells if cell.verdict == "not run"]
    assert cell.at == {"signal": 9.0, "threshold": 9}
    assert "nine and nine" in cell.reason
    with pytest.raises(UserError, match="no cell is possible: parameter signal"):
        swept(tmp_path, {"signal": [-1.0, -2.0]})


def test_a_budget_refines_where_neighbours_disagree(tmp_path):
    signals, thresholds = [k + 0.5 for k in range(17)], list(range(1, 18))
    said: list[str] = []
    found = swept(
        tmp_path,
        {"signal": signals, "threshold": thresholds},
        budget=3600,
        on_event=lambda event: said.append(event.sentence) if isinstance(event, Said) else None,
    )
    assert 0 < found.unvisited < 289
    visited = {(cell.at["signal"], cell.at["threshold"]) for cell in found.cells}
    for place, value in enumerate(thresholds[:-1]):  # both sides of the boundary, all along it
        assert (signals[place], value) in visited
        assert (signals[place + 1], value) in visited
    assert found.agreement == 1
    spent = swept(
        tmp_path / "second", {"signal": signals, "threshold": thresholds}, budget=1e-9, on_event=lambda e: None
    )
    assert len(spent.cells) == 4


def test_a_map_never_shrinks_while_its_runs_are_there(tmp_path):
    axes = {"signal": [k + 0.5 for k in range(5)], "noise": [0.01 * k for k in range(1, 6)]}
    first = swept(tmp_path, axes)
    assert len(swept(tmp_path, axes, budget=1e-9).cells) == 25
    (stored,) = lab.maps("mapped", runs=tmp_path)
    assert stored.to_dict() == first.to_dict()

    def stop(event):
        if isinstance(event, Started) and event.total > event.stored:
            raise KeyboardInterrupt

    lab.remove_run(first.cells[6].run, runs=tmp_path)  # one of the second round
    with pytest.raises(KeyboardInterrupt):
        swept(tmp_path, axes, on_event=stop)
    (stored,) = lab.maps("mapped", runs=tmp_path)
    assert [cell.run for cell in stored.cells] == [cell.run for cell in first.cells if cell is not first.cells[6]]


def test_a_stored_cell_with_a_damaged_unit_is_computed_again(tmp_path):
    first = swept(tmp_path, {"signal": [0.5, 1.5]})
    unit = lab.open_run("mapped", first.cells[0].run, runs=tmp_path, studies=FIXTURES).manifest.units[0].key
    (tmp_path / "mapped" / "units" / unit / "measurements.parquet").write_bytes(b"nothing")
    said: list[str] = []
    again = swept(
        tmp_path,
        {"signal": [0.5, 1.5]},
        on_event=lambda event: said.append(event.sentence) if isinstance(event, Said) else None,
    )
    assert [cell.run for cell in again.cells] == [cell.run for cell in first.cells]
    assert any("damaged" in sentence for sentence in said)


@pytest.fixture
def backend(monkeypatch):
    """What a sweep does to its backend, which is threads of this process in place of a cluster."""
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("distributed is not installed: it is in the extra cluster")
    seen: list[str] = []

    @contextlib.contextmanager
    def threads(kind, jobs, *rest):
        seen.append(f"open for {jobs}")
        try:
            with joblib.parallel_config("threading", n_jobs=2):
                yield Workers(lambda: 2)
        finally:
            seen.append("closed")

    monkeypatch.setattr(dispatch, "joblib_backend", threads)
    return seen


def test_a_sweep_opens_its_backend_once(tmp_path, backend):
    axes = {"signal": [0.5, 1.5, 2.5], "noise": [0.01, 0.02, 0.03]}
    units: list[int] = []

    def listen(event):
        if isinstance(event, Started):
            units.append(event.total)

    found = swept(tmp_path, axes, budget=3600, backend="dask", jobs=6, on_event=listen)
    assert len(found.cells) == 9
    assert backend == ["open for 6", "closed"]
    # The arms of the claim one by one, and then as many cells between two looks at the clock as there are workers.
    assert units == [1, 2, 7, 4]
    swept(tmp_path, axes, backend="dask", jobs=6)
    assert backend == ["open for 6", "closed"], "what is stored opens none"


def test_an_interrupted_sweep_closes_its_backend(tmp_path, backend):
    def stop(event):
        if isinstance(event, UnitDone):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(tmp_path, {"signal": [0.5, 1.5]}, backend="dask", jobs=64, on_event=stop)
    assert backend == ["open for 2", "closed"], "no more jobs than there may be units"


def test_bad_input_is_one_sentence(tmp_path):
    for vary, claim, words in (
        ({"signal": [1.0]}, "C1", "at least two values"),
        ({"signal": [1.0, 1.0]}, "C1", "come to the same"),
        ({"a": [1, 2], "b": [1, 2], "c": [1, 2]}, "C1", "one or two axes"),
        ({"sgnal": [1.0, 2.0]}, "C1", "did you mean 'signal'"),
        ({"signal": [1.0, 2.0]}, "C9", "unknown claim"),
        ({"signal": [1.0, 2.0]}, "C3", "--arms"),
    ):
        with pytest.raises(UserError, match=words):
            swept(tmp_path, vary, claim)
    with pytest.raises(UserError, match="cannot be judged"):
        swept(tmp_path, {"signal": [1.0, 2.0]}, "C3", arms="measured")
    with pytest.raises(UserError, match="both varied and set"):
        swept(tmp_path, {"signal": [1.0, 2.0]}, set={"signal": 3.0})
    with pytest.raises(UserError, match="no time"):
        swept(tmp_path, {"signal": [1.0, 2.0]}, budget=0)


def test_the_only_boundary_is_the_claim_where_none_is_named(tmp_path):
    assert swept(tmp_path, {"signal": [0.5, 1.5]}, None).claim == "C1"


def test_charts_of_one_and_two_parameters(tmp_path):
    two = swept(tmp_path).figure().to_dict()
    assert len(two["hconcat"]) == 2
    assert len(two["hconcat"][0]["layer"]) == 4  # squares, verdicts, the boundary and its edge
    one = swept(tmp_path, {"signal": SIGNALS}, set={"threshold": 2}).figure().to_dict()
    assert len(one["layer"]) == 3


def test_the_drawn_boundary_is_the_theory_s(tmp_path):
    found = swept(tmp_path)
    assert found.segments
    for x, y, x2, y2 in found.segments:
        for place, height in ((x, y), (x2, y2)):
            assert 0.5 + place == pytest.approx(1 + height, abs=1e-6)


def test_a_killed_sweep_goes_on_where_it_was(tmp_path):
    """Killed twice; every finished unit is computed once, and the map is that of an undisturbed sweep."""
    log = tmp_path / "log"
    command = [
        *(sys.executable, "-m", "assay", "sweep", "mapped", "--claim", "C1", "--jobs", "1"),
        *("--vary", "signal=0.5..9.5:10", "--vary", "noise=0.01..0.1:10", "--set", f"log={log}"),
        *("--runs", str(tmp_path / "runs"), "--studies", FIXTURES, "--json"),
    ]
    for seen in (10, 40):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        waited = time.monotonic()
        while len(log.read_text().splitlines() if log.exists() else []) < seen and time.monotonic() - waited < 120:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    computed = log.read_text().splitlines()
    assert 100 <= len(computed) <= 102  # what was at work when the process was killed is computed again
    (stored,) = lab.maps("mapped", runs=tmp_path / "runs")
    undisturbed = lab.sweep(
        "mapped",
        {"signal": [k + 0.5 for k in range(10)], "noise": [0.01 * (k + 1) for k in range(10)]},
        "C1",
        runs=tmp_path / "other",
        studies=FIXTURES,
        jobs=1,
    )
    assert [cell.verdict for cell in stored.cells] == [cell.verdict for cell in undisturbed.cells]
    for ours, theirs in zip(stored.cells, undisturbed.cells, strict=True):
        assert math.isclose(ours.estimate, theirs.estimate, rel_tol=1e-6)


def test_an_undecided_cell_counts_by_its_estimate_and_not_among_the_decided(tmp_path):
    found = swept(tmp_path, {"signal": [1.0, 1.001], "threshold": [0, 1]}, set={"noise": 0.1})
    undecided = [cell for cell in found.cells if cell.verdict == "undecided"]
    assert {cell.at["threshold"] for cell in undecided} == {1}
    assert all(cell.met == (cell.estimate > 0) for cell in undecided)
    assert len(found.compared) == 4
    assert found.decided_agreement == 1


def test_a_phase_is_for_maps_alone_and_needs_a_boundary():
    from assay.lab.registry import Registry

    registry = Registry(lab.Params)
    with pytest.raises(ValueError, match="starts with P"):
        registry.phase("C1", "It is so.", source="here")
    study = discovery.find("label-granularity", None)
    assert "P1" in study.phases
    assert "P1" not in study.claims
    assert "P1" in study.boundaries


def test_every_map_of_a_study_has_a_boundary_that_can_be_computed():
    declared = {}
    for name, study in discovery.studies().items():
        assert set(study.phases) <= set(study.boundaries)
        for boundary in study.boundaries.values():
            assert math.isfinite(boundary.side(study.resolve("laptop", {})))
            declared.setdefault(name, boundary)
    assert len(declared) >= 6


def test_a_slip_in_a_parameter_is_told_as_one(tmp_path):
    with pytest.raises(UserError, match=r"^unknown parameter 'signals'.*did you mean 'signal'"):
        swept(tmp_path, {"signals": [1.0, 2.0]})
