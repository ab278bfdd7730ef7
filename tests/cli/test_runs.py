"""Runs as objects from the shell: listed, named, compared, removed; looked at beforehand, and stopped at any moment."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

OUTSIDE = str(Path(__file__).parents[1] / "lab" / "outside")
FIXTURES = str(Path(__file__).parents[1] / "lab" / "fixtures")


@pytest.fixture
def where(runs):
    return ("--studies", OUTSIDE, "--runs", str(runs))


def listed(assay, runs):
    status, out, _ = assay("runs", "--json", "--runs", str(runs))
    assert status == 0
    return json.loads(out)


def test_runs_are_listed_with_what_they_were_and_came_to(assay, runs, where):
    assert assay("run", "coin", "--preset", "smoke", "--set", "bias=0.9", "--name", "biased", "--json", *where)[0] == 0
    plain, biased = listed(assay, runs)
    assert (plain["preset"], plain["whole"], plain["status"], plain["seeds"]) == ("smoke", True, "complete", 4)
    assert plain["verdicts"] == {"holds": 2}
    assert plain["bytes"] > 1000
    assert (biased["name"], biased["set"], biased["whole"]) == ("biased", {"bias": "0.9"}, False)
    for width in ("200", "60"):
        os.environ["COLUMNS"] = width
        try:
            _, out, _ = assay("runs", "coin", "--runs", str(runs))
        finally:
            del os.environ["COLUMNS"]
        for word in (plain["id"], biased["id"], "biased", "smoke", "--set bias=0.9", "complete", "✓2", "KiB"):
            assert word in out
    status, out, err = assay("runs", "nosuch", "--runs", str(runs))
    assert (status, out) == (2, "")
    assert "no run of 'nosuch' is stored" in err


def test_a_run_is_named_found_and_removed(assay, runs, where):
    assert assay("run", "coin", "--preset", "smoke", "--seeds", "6", "--json", *where)[0] == 0
    first, second = listed(assay, runs)
    status, _, err = assay("runs", "--name", second["id"], "more", "--runs", str(runs))
    assert (status, err) == (0, f"assay: run {second['id']} is called 'more'\n")
    status, out, _ = assay("claims", "coin", "--run", "more", "--json", *where)
    assert (status, {row["seeds"] for row in json.loads(out)}) == (0, {6})
    assert assay("runs", "--name", first["id"], "more", "--runs", str(runs))[0] == 2
    units = len(list((runs / "coin" / "units").iterdir()))
    status, _, err = assay("runs", "--remove", "more", "--runs", str(runs))
    assert (status, "removed run " + second["id"] in err) == (0, True)
    assert [run["id"] for run in listed(assay, runs)] == [first["id"]]
    # What the other run lists is kept.
    assert 0 < len(list((runs / "coin" / "units").iterdir())) < units
    assert assay("claims", "coin", *where)[0] == 0
    assert assay("runs", "--remove", "more", "--runs", str(runs))[0] == 2


def test_two_runs_are_compared(assay, runs, where, tmp_path):
    assert assay("run", "coin", "--preset", "smoke", "--set", "bias=0.9", "--name", "biased", "--json", *where)[0] == 0
    first = listed(assay, runs)[0]["id"]
    status, out, _ = assay("compare", first, "biased", "--json", *where)
    document = json.loads(out)
    assert (status, document["parameters"]) == (0, {"bias": [0.6, 0.9]})
    assert {row["id"] for row in (*document["turned"], *document["moved"])} == {"C1", "N1"}
    status, out, _ = assay("compare", first, "biased", *where)
    assert (status, "parameter bias" in out) == (0, True)
    assert "estimates moved" in out
    # Code that changed between them is named by its file.
    shutil.copytree(OUTSIDE, tmp_path / "studies")
    study = tmp_path / "studies" / "coin" / "study.py"
    study.write_text(study.read_text().replace("heads.mean(1)", "heads.sum(1) / params.tosses", 1))
    edited = ("--studies", str(tmp_path / "studies"), "--runs", str(runs))
    assert assay("run", "coin", "--preset", "smoke", "--name", "edited", "--json", *edited)[0] == 0
    status, out, _ = assay("compare", first, "edited", *edited)
    assert "the code of arm 'tossed' differs in `study.py`" in out
    assert_one_sentence(assay("compare", first, "nosuch", *where), "unknown run 'nosuch'")


def assert_one_sentence(answer, words):
    status, out, err = answer
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_dry_run_says_what_would_be_computed_and_why(assay, runs, where):
    before = sorted(path for path in runs.rglob("*"))
    status, out, err = assay("run", "coin", "--preset", "smoke", "--seeds", "6", "--dry-run", *where)
    assert (status, err) == (0, "")
    assert "2 units to compute" in out
    assert "seeds 4–5 are new" in out
    status, out, _ = assay("run", "coin", "--preset", "smoke", "--dry-run", "--json", *where)
    (document,) = json.loads(out)
    assert (document["compute"], document["reuse"]) == (0, 2)
    assert document["arms"] == [{"arm": "tossed", "compute": 0, "reuse": 2, "reason": "everything is stored"}]
    assert sorted(path for path in runs.rglob("*")) == before


def test_one_point_of_the_grid(assay, tmp_path):
    where = ("--studies", OUTSIDE, "--runs", str(tmp_path / "runs"), "--preset", "smoke")
    status, out, _ = assay("run", "coin", "--point", "setting=few", "--json", *where)
    (run,) = json.loads(out)["runs"]
    assert (status, run["units"]) == (0, 1)
    assert {claim["id"]: claim["verdict"] for claim in run["claims"]} == {"C1": "not run", "N1": "holds"}
    assert_one_sentence(assay("run", "coin", "--point", "setting=lots", *where), "unknown value of 'setting' 'lots'")
    assert_one_sentence(assay("run", "coin", "--point", "few", *where), "--point takes name=value")
    # A choice of points never hides a full run.
    assert assay("run", "coin", "--json", *where)[0] == 0
    assert assay("run", "coin", "--point", "setting=few", "--json", *where)[0] == 0
    status, out, err = assay("claims", "coin", "--json", *where[:4])
    assert {row["verdict"] for row in json.loads(out)} == {"holds"}
    assert "a newer run that is not the whole preset (--point setting=few)" in err


def test_a_broken_claim_is_exit_status_one_with_file_and_line(assay, tmp_path):
    shutil.copytree(OUTSIDE, tmp_path / "studies")
    claims = tmp_path / "studies" / "coin" / "claims.py"
    claims.write_text(claims.read_text().replace('m.final("error"', 'm.final("eror"'))
    where = ("--studies", str(tmp_path / "studies"), "--runs", str(tmp_path / "runs"))
    status, out, err = assay("run", "coin", "--preset", "smoke", "--json", *where)
    assert (status, json.loads(out)["runs"][0]["broken"]) == (1, ["N1"])
    assert re.search(
        r"assay: claim N1 of coin is broken: unknown metric 'eror'.*did you mean 'error'.*claims.py, line 11\)", err
    )
    assert json.loads(out)["runs"][0]["claims"][0]["verdict"] == "holds"
    status, _, err = assay("claims", "coin", *where)
    assert (status, "claim N1 of coin is broken" in err) == (1, True)
    claims.write_text(claims.read_text().replace('m.final("eror"', 'm.final("error"'))
    assert assay("claims", "coin", *where)[0] == 0


def test_an_arms_error_names_file_and_line(assay, tmp_path):
    command = ("run", "faulty", "--studies", FIXTURES, "--preset", "smoke", "--runs", str(tmp_path))
    status, _, err = assay(*command)
    assert status == 1
    assert re.search(r"failed: ZeroDivisionError: the second condition is broken \(.*study.py, line 24\)", err)


def test_check_prints_problems_like_a_compiler(assay, tmp_path):
    status, out, _ = assay("check", "coin", "--studies", OUTSIDE)
    assert (status, out.splitlines()[-1]) == (0, "no problems")
    shutil.copytree(OUTSIDE, tmp_path / "studies")
    study = tmp_path / "studies" / "coin" / "study.py"
    study.write_text(study.read_text().replace('seeds.uniform("tosses", params.tosses)', "__import__('torch').rand(3)"))
    status, out, _ = assay("check", "coin", "--studies", str(tmp_path / "studies"), "--json")
    kinds = {problem["kind"] for problem in json.loads(out)}
    assert (status, "arm" in kinds or "randomness" in kinds) == (1, True)
    assert_one_sentence(assay("check", "coins", "--studies", OUTSIDE), "did you mean 'coin'?")


@pytest.mark.parametrize("width", ["40", "79", "80", "100", "150"])
def test_output_fits_the_columns_when_it_is_piped(assay, stored, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    where = ("--studies", OUTSIDE, "--runs", str(stored[0]))
    for command in (("claims", "coin", *where), ("list", "coin", *where[:2]), ("runs", *where[2:])):
        status, out, _ = assay(*command)
        assert status == 0
        assert max(len(line) for line in out.splitlines()) <= int(width)
        flat = " ".join(re.sub("[│┃]", " ", out).split())
        if command[0] == "claims":
            for word in ("bias", "share of tossed many", "[-0.05,", "0.05]", "4"):
                assert word in flat


def test_version_help_and_completion(assay):
    import assay as package

    assert assay("--version")[:2] == (0, f"assay {package.__version__}\n")
    for flag in ("-h", "--help"):
        status, out, _ = assay(flag)
        assert (status, "Commands:" in out) == (0, True)
        assert assay("run", flag)[0] == 0
    status, out, _ = assay("--help")
    assert "--install-completion" in out


def test_the_beginning_of_a_name_is_enough_for_a_suggestion(assay):
    for name, meant in (("featur", "feature-emergence"), ("meta", "meta-split"), ("gem", "gemfilter")):
        assert_one_sentence(assay("list", name), f"did you mean '{meant}'?")


def test_several_values_with_or_without_brackets(assay, tmp_path):
    where = ("--preset", "smoke", "--arms", "dimensions", "--dry-run", "--json", "--runs", str(tmp_path))
    documents = []
    for text in ("dims=4,8", "dims=[4, 8]", "dims=(4,8)"):
        status, out, _ = assay("run", "looped-transformers", "--set", text, *where)
        assert status == 0
        documents.append(out)
    assert len(set(documents)) == 1
    answer = assay("run", "looped-transformers", "--set", "dims=[4;8]", *where[:-3], "--runs", str(tmp_path))
    assert_one_sentence(answer, "dims")


def test_studies_come_from_the_environment(assay, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_STUDIES", OUTSIDE)
    monkeypatch.setenv("ASSAY_RUNS", str(tmp_path))
    assert assay("run", "coin", "--preset", "smoke", "--json")[0] == 0
    assert assay("claims", "coin")[0] == 0
    assert "coin" in assay("list")[1]


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("wait", [0.05, 0.6, 1.5, 3.0])
def test_an_interrupt_at_any_moment_prints_no_traceback(tmp_path, jobs, wait):
    """In start-up, while workers start, and in the middle of the work."""
    command = [sys.executable, "-m", "assay.cli", "run", "slow", "--preset", "smoke", "--jobs", jobs]
    command += ["--studies", FIXTURES, "--runs", str(tmp_path / "runs"), "--set", "delay=0.3"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(wait)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group gets it
    out, err = process.communicate(timeout=60)
    if "runpy" in err:
        return  # Python itself was not up yet: nothing of ours has run
    for word in ("Traceback", "BrokenProcessPool", "Error", "resource_tracker"):
        assert word not in out + err
    assert process.returncode in (130, -signal.SIGINT)
    if process.returncode == 130:
        assert "assay: stopped" in err


@pytest.mark.parametrize("everybody", [False, True], ids=["main process", "all processes"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_termination_stops_a_run_as_an_interrupt_does(assay, tmp_path, jobs, everybody):
    """Slurm and `kill` ask the main process to end, systemd every process of the service."""
    log, runs = tmp_path / "log", tmp_path / "runs"
    where = ["--studies", FIXTURES, "--runs", str(runs)]
    changed = ["--set", "delay=1", "--set", f"log={log}"]
    command = [sys.executable, "-m", "assay.cli", "run", "slow", "--preset", "smoke", "--jobs", jobs]
    process = subprocess.Popen(
        [*command, *changed, *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(runs.glob("slow/units/[!.]*/unit.json")):
        time.sleep(0.05)
    (os.killpg if everybody else os.kill)(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=60)  # the pipes are closed: no worker is left
    assert process.returncode == 143
    assert "stopped; the same command goes on with slow where it was" in err
    for word in ("Traceback", "Warning", "BrokenProcessPool"):
        assert word not in out + err
    (run,) = listed(assay, runs)
    assert run["status"] == "interrupted"
    begun = log.read_text().splitlines()
    status, out, _ = assay("run", "slow", "--preset", "smoke", *changed, "--dry-run", "--json", *where)
    assert status == 0
    assert 0 < json.loads(out)[0]["reuse"] <= len(begun) < 12
    assert [line for line in begun if Path("/proc", line.split()[1]).exists()] == []


def test_a_run_that_diverged_is_named_wherever_it_is_shown(assay, tmp_path):
    words = "curve rate=10.0 diverged in seed 1: loss is not finite from step 2 on"
    chosen = ("--studies", FIXTURES, "--runs", str(tmp_path / "runs"))
    status, _, err = assay("run", "unstable", "--preset", "smoke", "--arms", "curve", *chosen)
    assert status == 0
    assert words in err
    status, out, err = assay("claims", "unstable", "--json", *chosen)
    assert status == 0
    assert f"{words}; what it measured then counts as the worst" in err
    assert {row["id"]: row["verdict"] for row in json.loads(out)} == {"C1": "holds", "C2": "fails", "N1": "not run"}
    status, out, _ = assay("runs", "--runs", str(tmp_path / "runs"), "--json")
    assert json.loads(out)[0]["diverged"] == [words]
    status, out, _ = assay("runs", "--runs", str(tmp_path / "runs"))
    assert "1 diverged" in " ".join(out.split())
    assay("report", "unstable", "--out", str(tmp_path / "report"), "--export", "none", *chosen)
    assert words in (tmp_path / "report" / "unstable.html").read_text()
