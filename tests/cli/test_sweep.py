"""`assay sweep` at the front door: a table, a picture, a document, and a sentence for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FIXTURES = str(Path(__file__).parents[1] / "lab" / "fixtures")


@pytest.fixture
def sweep(assay, tmp_path):
    where = ("--runs", str(tmp_path / "runs"), "--studies", FIXTURES, "--jobs", "1")
    return lambda *given: assay("sweep", "mapped", *where, *given)


def test_a_map_as_table_picture_and_document(sweep, tmp_path):
    axes = ("--vary", "signal=0.5..2.5:3", "--vary", "threshold=1,2")
    status, out, err = sweep(*axes, "--out", str(tmp_path / "map.svg"))
    assert status == 0, err
    assert "3 fails, 3 holds" in out
    assert "100% of 6 cells" in out
    assert (tmp_path / "map.svg").read_text().startswith("<svg")
    status, out, _ = sweep(*axes, "--json")
    assert status == 0
    found = json.loads(out)
    assert (found["agreement"], found["compared"], found["axes"]) == (
        1.0,
        6,
        {"signal": [0.5, 1.5, 2.5], "threshold": [1, 2]},
    )


def test_cells_whose_units_failed_are_told_and_the_status_says_so(sweep, tmp_path):
    status, out, err = sweep("--vary", "signal=1,2", "--set", f"log={tmp_path / 'nowhere' / 'log'}")
    assert status == 1
    assert "2 not run" in out
    assert "No such file" in out, "the table says why a cell has no run"
    assert "2 of 2 cells failed; the first: FileNotFoundError" in err


def test_a_claim_that_is_broken_in_one_cell_or_in_all_is_status_1(assay, tmp_path):
    where = ("--runs", str(tmp_path / "runs"), "--studies", FIXTURES, "--jobs", "1")
    status, out, err = assay("sweep", "odd", "--vary", "at=1,4,6", *where)
    assert status == 1
    assert "1 fails, 1 not run, 1 holds" in out
    assert "1 of 3 cells failed; the first: claim C1 cannot be judged: ZeroDivisionError: not at four" in err
    status, out, err = assay("sweep", "odd", "--vary", "at=1,5,6", *where)
    assert (status, "nothing is predicted: ValueError: no theory at five" in err) == (1, True)
    status, out, err = assay("sweep", "mapped", "--claim", "C3", "--arms", "measured", "--vary", "signal=1,2", *where)
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith("assay: claim C3 cannot be judged: ZeroDivisionError")


@pytest.mark.parametrize("given", [("--out", "taken/map.svg"), ("--out", "folder.svg"), ("--save",)])
def test_a_place_that_takes_no_map_is_refused_before_anything_is_computed(sweep, tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.svg").mkdir()
    for name in ("taken", "results"):
        (tmp_path / name).touch()
    status, out, err = sweep("--vary", "signal=1,2", *given)
    assert (status, out) == (2, "")
    assert err.startswith("assay: cannot write ")
    assert not (tmp_path / "runs").exists()


def test_a_place_that_is_gone_by_then_is_told_behind_the_table(sweep, tmp_path, monkeypatch):
    monkeypatch.setattr("assay.cli.sweep.reachable", lambda path: None)
    (tmp_path / "taken").touch()
    status, out, err = sweep("--vary", "signal=1,2", "--out", str(tmp_path / "taken" / "map.json"))
    assert status == 2
    assert "of 2 cells" in out
    assert err.splitlines()[-1].startswith("assay: cannot write ")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--vary", "signal"), "name=value"),
        (("--vary", "signal=1,2", "--vary", "signal=3,4"), "one parameter twice"),
        (("--vary", "signal=1,2", "--budget", "soon"), "90s, 10m or 1h"),
        (("--vary", "signal=1,2", "--out", "map.txt"), "written as one of"),
        (("--vary", "signal=1..5"), "low..high:count"),
        (("--vary", "signal=1,2", "--jobs", "0"), "assay: --jobs 0 is not allowed: at least one unit"),
        (("--vary", "signal=1,2", "--preset", "huge"), "assay: unknown preset 'huge' (allowed: smoke, laptop, paper)"),
        (("--vary", "signal=1,2", "--set", "sgnal=3"), "assay: unknown parameter 'sgnal'"),
        (("--vary", "signal=1,2", "--backend", "horse"), "assay: unknown backend 'horse'"),
    ],
)
def test_bad_input_is_one_sentence(sweep, given, words):
    status, _, err = sweep(*given)
    assert status == 2
    assert words in err
    assert len(err.strip().splitlines()[-1]) < 300
