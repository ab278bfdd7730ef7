"""The command line: what it prints, its exit status, and one sentence for bad input."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OUTSIDE = str(Path(__file__).parents[1] / "lab" / "outside")
FIXTURES = str(Path(__file__).parents[1] / "lab" / "fixtures")
KEYS = ["study", "id", "headline", "statement", "source", "verdict"]
KEYS += ["estimate", "low", "high", "criterion", "seeds", "run", "preset", "set"]


def contents(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_run_prints_one_json_document_and_nothing_else(stored):
    document = json.loads(stored[1])
    (run,) = document["runs"]
    assert (run["study"], run["preset"], run["seeds"], run["status"]) == ("coin", "smoke", 4, "complete")
    assert (run["units"], run["computed"], run["reused"]) == (2, 2, 0)
    assert [claim["id"] for claim in run["claims"]] == ["C1", "N1"]
    assert "coin 2/2 tossed setting=many" in stored[2]


def test_claims_print_the_promised_keys(assay, stored):
    status, out, err = assay("claims", "--json", "--runs", str(stored[0]), "--studies", OUTSIDE)
    rows = json.loads(out)
    assert (status, err) == (0, "")
    assert all(set(KEYS) <= set(row) for row in rows)
    share = rows[0]
    assert (share["study"], share["id"], share["preset"], share["set"]) == ("coin", "C1", "smoke", {})
    assert share["criterion"] == "share of tossed many − 0.6 in [-0.05, 0.05]"
    assert share["low"] <= share["estimate"] <= share["high"]
    assert share["seeds"] == 4
    assert rows == json.loads(stored[1])["runs"][0]["claims"]


def test_claims_of_a_study_as_a_table(assay, stored):
    status, out, _ = assay("claims", "coin", "--runs", str(stored[0]), "--studies", OUTSIDE)
    assert status == 0
    assert "share of heads" in out
    assert "share of tossed many" in out


def test_the_runs_folder_may_come_from_the_environment(assay, stored, monkeypatch):
    monkeypatch.setenv("ASSAY_RUNS", str(stored[0]))
    status, out, _ = assay("claims", "--json", "--studies", OUTSIDE)
    assert (status, len(json.loads(out))) == (0, 2)


def test_a_second_run_reuses_and_a_third_changes_a_parameter(assay, runs):
    same = ("run", "coin", "--studies", OUTSIDE, "--preset", "smoke", "--runs", str(runs))
    status, out, err = assay(*same)
    assert (status, err) == (0, "")
    assert "0 units computed, 2 reused" in out
    status, out, _ = assay(*same, "--set", "bias=0.9", "--seeds", "5", "--json")
    (run,) = json.loads(out)["runs"]
    assert (status, run["computed"], run["set"], run["seeds"]) == (0, 2, {"bias": "0.9"}, 5)
    ids = sorted(path.stem for path in (runs / "coin" / "manifests").iterdir())
    # A run with another parameter never hides the full one.
    _, out, err = assay("claims", "--json", "--runs", str(runs), "--studies", OUTSIDE)
    assert {(row["run"], row["seeds"]) for row in json.loads(out)} == {(ids[1], 4)}
    assert "not the whole preset (--set bias=0.9 --seeds 5): --run " + ids[2] in err
    _, out, _ = assay("claims", "coin", "--run", ids[2], "--json", "--runs", str(runs), "--studies", OUTSIDE)
    assert [(row["set"], row["seeds"]) for row in json.loads(out)] == [({"bias": "0.9"}, 5)] * 2


def test_list_names_studies_questions_claims_and_costs(assay):
    status, out, _ = assay("list", "--studies", OUTSIDE, "--json")
    coin = next(row for row in json.loads(out) if row["study"] == "coin")
    assert status == 0
    assert coin["question"] == "Does the share of heads approach the bias of the coin?"
    assert coin["claims"] == ["C1", "N1"]
    assert coin["cost"] == {"smoke": "1 s", "laptop": "1 s", "paper": "2 s"}
    status, out, _ = assay("list", "--studies", OUTSIDE)
    assert status == 0
    assert "coin" in out


def test_a_damaged_unit_is_named_and_computed_again_by_a_run(assay, runs):
    path = damage(next((runs / "coin" / "units").iterdir()) / "measurements.parquet")
    status, _, err = assay("run", "coin", "--studies", OUTSIDE, "--preset", "smoke", "--runs", str(runs), "--json")
    assert status == 0
    assert f"damaged: {path} does not match its checksum; it is computed again" in err
    assert assay("claims", "--runs", str(runs), "--studies", OUTSIDE)[0] == 0


def test_a_unit_that_fails_is_exit_status_one(assay, tmp_path):
    command = ("run", "faulty", "--studies", FIXTURES, "--preset", "smoke", "--runs", str(tmp_path), "--json")
    status, out, err = assay(*command)
    (run,) = json.loads(out)["runs"]
    assert (status, run["status"], run["computed"]) == (1, "failed", 2)
    verdicts = {claim["id"]: claim["verdict"] for claim in run["claims"]}
    assert verdicts == {"C1": "holds", "C2": "not run", "C3": "holds", "N1": "holds"}
    assert "broken setting_of=second seeds 0–2 failed: ZeroDivisionError: the second condition is broken" in err
    assert "Traceback" not in err
    manifest = json.loads(next((tmp_path / "faulty" / "manifests").iterdir()).read_text())
    assert manifest["failures"][0]["trace"].startswith("Traceback")
    status, out, err = assay("claims", "--json", "--runs", str(tmp_path), "--studies", FIXTURES)
    rows = {row["id"]: row for row in json.loads(out)}
    assert status == 0
    assert "1 of 3 units of faulty are not stored yet" in err
    assert {*KEYS, "reason"} <= set(rows["C2"])
    assert {*KEYS, "printed", "paper"} <= set(rows["N1"])
    assert rows["C2"]["estimate"] is None


def test_a_left_out_arm_is_no_error_and_an_asked_one_is(assay, tmp_path):
    command = ("run", "choosy", "--studies", FIXTURES, "--preset", "smoke", "--runs", str(tmp_path / "runs"))
    assert_refused(assay, *command, "--arms", "+needy", says="arm 'needy' cannot run: it needs a GPU (--device cuda)")
    assert not (tmp_path / "runs").exists()
    status, out, _ = assay(*command, "--json")
    (run,) = json.loads(out)["runs"]
    assert (status, run["arms"]) == (0, ["double", "heavy", "linear"])
    assert {claim["id"]: claim["verdict"] for claim in run["claims"]} == {"C1": "holds", "N1": "not run"}


def damage(path: Path) -> Path:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    return path


def assert_refused(assay, *arguments: str, says: str) -> None:
    """Exit status 2, one sentence on standard error that says what was wrong, nothing on standard output."""
    status, out, err = assay(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("assay: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    assert says in err


BAD_RUNS = {
    "unknown study": (["nosuch"], "unknown study 'nosuch' (allowed: "),
    "misspelt study": (["coins"], "did you mean 'coin'?"),
    "one unknown study of two": (["coin", "nosuch"], "unknown study 'nosuch'"),
    "value out of range": (["coin", "--set", "tosses=-3"], "parameter tosses = '-3' is not allowed: input should be"),
    "value of another type": (["coin", "--set", "tosses=many"], "parameter tosses = 'many' is not allowed"),
    "unknown parameter": (["coin", "--set", "nosuch=1"], "unknown parameter 'nosuch' (allowed: bias, tosses)"),
    "no assignment": (["coin", "--set", "garbage"], "--set takes name=value, and 'garbage' is not of that form"),
    "unknown setting": (["coin", "--set", "lots.tosses=50"], "unknown setting 'lots' (allowed: few, many)"),
    "setting out of range": (["coin", "--set", "few.tosses=1"], "parameter tosses = '1' is not allowed"),
    "unknown preset": (["coin", "--preset", "big"], "unknown preset 'big' (allowed: smoke, laptop, paper)"),
    "no seeds": (["coin", "--seeds", "0"], "--seeds 0 is not allowed: a run needs at least one seed"),
    "negative seeds": (["coin", "--seeds", "-1"], "--seeds -1 is not allowed"),
    "unknown arm": (["coin", "--arms", "thrown"], "unknown arm 'thrown' (allowed: tossed)"),
    "unknown backend": (
        ["coin", "--backend", "threads"],
        "unknown backend 'threads' (allowed: loky, ray, dask, slurm)",
    ),
    "no jobs": (["coin", "--jobs", "0"], "--jobs 0 is not allowed"),
    "unknown device": (["coin", "--device", "tpu"], "unknown device 'tpu' (allowed: cpu, cuda, auto)"),
    "no GPU": (["coin", "--device", "cuda"], "has no GPU"),
    "all among others": (["coin", "all"], "'all' stands for every study, so it cannot be named together with others"),
    "address of no cluster": (["coin", "--address", "tcp://x"], "say of which kind: --backend ray or --backend dask"),
}


@pytest.mark.parametrize("case", BAD_RUNS)
def test_bad_input_to_run_leaves_stored_results_untouched(assay, stored, monkeypatch, case):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    arguments, says = BAD_RUNS[case]
    before = contents(stored[0])
    preset = [] if "--preset" in arguments else ["--preset", "smoke"]
    assert_refused(assay, "run", *arguments, *preset, "--runs", str(stored[0]), "--studies", OUTSIDE, says=says)
    assert contents(stored[0]) == before


@pytest.mark.parametrize("command", ["run", "claims", "list"])
@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_studies_folder_without_studies(assay, tmp_path, command, folder):
    (tmp_path / "empty").mkdir()
    says = "does not exist" if folder == "nowhere" else "holds no study"
    assert_refused(
        assay, command, *(["coin"] if command == "run" else []), "--studies", str(tmp_path / folder), says=says
    )


@pytest.mark.parametrize("where", ["", "runs", "deep/runs"])
def test_an_unwritable_runs_folder(assay, tmp_path, where):
    (tmp_path / "file").write_text("in the way")
    runs = tmp_path / "file" / where
    says = "cannot write to the runs folder"
    assert_refused(assay, "run", "coin", "--preset", "smoke", "--studies", OUTSIDE, "--runs", str(runs), says=says)
    assert (tmp_path / "file").read_text() == "in the way"
    says = "no run of 'coin' is stored in"
    assert_refused(assay, "claims", "coin", "--studies", OUTSIDE, "--runs", str(runs), says=says)


def test_claims_without_runs(assay, tmp_path, stored):
    options = ("--studies", OUTSIDE, "--runs")
    assert_refused(assay, "claims", *options, str(tmp_path), says="no runs of known studies are stored in")
    assert_refused(assay, "claims", "coin", *options, str(tmp_path), says="no run of 'coin' is stored in")
    assert_refused(assay, "claims", "nosuch", *options, str(stored[0]), says="unknown study 'nosuch'")
    assert_refused(assay, "claims", "--preset", "big", *options, str(stored[0]), says="unknown preset 'big'")
    assert_refused(assay, "claims", "--preset", "paper", *options, str(stored[0]), says="with preset paper is stored")
    assert_refused(assay, "claims", "coin", "--run", "x", *options, str(stored[0]), says="unknown run 'x'")


@pytest.mark.parametrize("name", ["measurements.parquet", "unit.json", "SHA256SUMS"])
def test_claims_of_a_damaged_unit(assay, runs, name):
    path = damage(next((runs / "coin" / "units").iterdir()) / name)
    before = contents(runs)
    says = str(path.parent) if name == "SHA256SUMS" else f"{path} does not match its checksum"
    assert_refused(assay, "claims", "--studies", OUTSIDE, "--runs", str(runs), says=says)
    assert contents(runs) == before


def test_claims_of_a_damaged_manifest(assay, runs):
    (path,) = (runs / "coin" / "manifests").iterdir()
    damage(path)
    says = f"the manifest {path} is damaged; remove it and run the study again"
    assert_refused(assay, "claims", "--studies", OUTSIDE, "--runs", str(runs), says=says)
    status, _, _ = assay("run", "coin", "--studies", OUTSIDE, "--preset", "smoke", "--runs", str(runs), "--json")
    assert status == 0
    assert assay("claims", "--studies", OUTSIDE, "--runs", str(runs))[0] == 0


def test_bad_input_in_a_process_of_its_own(tmp_path):
    command = [sys.executable, "-m", "assay", "run", "nosuch", "--runs", str(tmp_path / "runs")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("assay: unknown study 'nosuch'")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_without_a_name_a_preset_takes_the_studies_that_ran_it(assay, tmp_path):
    where = ("--studies", str(tmp_path / "studies"), "--runs", str(tmp_path / "runs"))
    shutil.copytree(Path(OUTSIDE) / "coin", tmp_path / "studies" / "coin")
    shutil.copytree(Path(FIXTURES) / "choosy", tmp_path / "studies" / "choosy")
    assert assay("run", "coin", "--preset", "smoke", *where)[0] == 0
    assert assay("run", "choosy", "--preset", "laptop", "--jobs", "1", *where)[0] == 0
    for names in ([], ["all"]):
        status, out, _ = assay("claims", *names, "--preset", "smoke", "--json", *where)
        assert (status, {row["study"] for row in json.loads(out)}) == (0, {"coin"})
    _, out, _ = assay("claims", "--json", *where)
    assert {row["study"] for row in json.loads(out)} == {"coin", "choosy"}
    assert_refused(assay, "claims", "--preset", "paper", *where, says="no run with preset paper is stored in")
    assert_refused(assay, "claims", "choosy", "--preset", "smoke", *where, says="no run of 'choosy' with preset smoke")
    assert_refused(assay, "claims", "coin", "all", *where, says="'all' stands for every study with a run")


def test_a_run_and_another_preset_contradict_each_other(assay, stored):
    run = next((stored[0] / "coin" / "manifests").glob("*.json")).stem
    where = ("claims", "coin", "--run", run, "--studies", OUTSIDE, "--runs", str(stored[0]))
    assert_refused(assay, *where, "--preset", "laptop", says=f"run {run} has the preset smoke, not laptop")
    assert assay(*where, "--preset", "smoke")[0] == 0


def test_claims_are_saved_for_a_preset_as_it_is_and_nothing_else(assay, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    where = ("--studies", OUTSIDE, "--runs", str(runs))
    assert_refused(assay, "claims", "--save", *where, says="the preset smoke only shows that everything runs")
    assert assay("run", "coin", "--json", *where)[0] == 0
    status, _, err = assay("claims", "--save", "--json", *where)
    assert (status, "wrote results/coin.laptop.json" in err) == (0, True)
    summary = json.loads((tmp_path / "results" / "coin.laptop.json").read_text())
    assert (summary["seeds"], len(summary["claims"])) == (8, 2)
    assert {"commit", "code", "params", "unit_seconds"} <= set(summary)
    before = contents(tmp_path / "results")
    assert assay("run", "coin", "--set", "bias=0.9", "--json", *where)[0] == 0
    newest = ("--run", max(path.stem for path in (runs / "coin" / "manifests").iterdir()))
    says = "is not saved, because it had --set bias=0.9"
    assert_refused(assay, "claims", "coin", "--save", *newest, *where, says=says)
    assert contents(tmp_path / "results") == before
    assert "coin, preset laptop with bias=0.9, run " in assay("claims", "coin", *newest, *where)[1]


def test_code_that_changed_after_a_run_is_pointed_out(assay, runs, tmp_path):
    shutil.copytree(OUTSIDE, tmp_path / "studies")
    where = ("--studies", str(tmp_path / "studies"), "--runs", str(runs))
    assert assay("claims", *where)[2] == ""
    study = tmp_path / "studies" / "coin" / "study.py"
    study.write_text(study.read_text().replace("heads.mean(1)", "heads.sum(1) / params.tosses", 1))
    for _ in range(2):  # judged anew, and then read back
        status, _, err = assay("claims", *where)
        assert (status, err) == (0, "assay: the code of coin has changed since this run (arms tossed); run it again\n")


def test_an_override_that_reaches_nothing_is_refused(assay, tmp_path):
    where = ("--preset", "smoke", "--json", "--studies", FIXTURES, "--runs", str(tmp_path))
    command = ("run", "choosy", "--arms", "linear", "--set", "width=9", "--set", "dim=5")
    assert_refused(assay, *command, *where, says="--set width=9 changes nothing that this run of choosy computes")
    assert_refused(assay, *command, *where, says="the arms that read it are double")
    assert list(tmp_path.iterdir()) == []


def test_runs_of_own_studies_are_not_called_absent(assay, runs):
    assert_refused(assay, "claims", "--runs", str(runs), says="(those of coin need --studies)")


def test_list_tells_what_can_be_asked_of_a_study(assay):
    status, out, _ = assay("list", "coin", "--studies", OUTSIDE)
    assert status == 0
    for word in ("A biased coin", "tossed", "probability of heads", "100000", "few", "tosses=20", "C1"):
        assert word in out
    assert_refused(assay, "list", "coins", "--studies", OUTSIDE, says="unknown study 'coins'")


def test_a_benchmark_that_cannot_be_saved_says_so(tmp_path):
    from assay import benchmarks
    from assay.lab import UserError

    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write the result"):
        benchmarks.save({"benchmark": "b", "device": "cpu"}, tmp_path / "file")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "coin", "--seeds", "abc"), "Invalid value for '--seeds'"),
        (("run", "coin", "--nosuch"), "No such option: --nosuch"),
        (("run",), "Missing argument"),
        (("nosuch",), "No such command 'nosuch'"),
    ],
)
def test_what_the_parser_refuses_is_one_sentence_too(assay, arguments, says):
    assert_refused(assay, *arguments, says=says)
