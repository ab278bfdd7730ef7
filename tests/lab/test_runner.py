"""Runs: resumed after a kill, shared between processes, repaired after damage, the same bit for bit."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib.metadata import version

import numpy as np
import pytest
import torch

from assay.lab import NotMeasured, UserError, results, runner
from assay.lab.backends import default_jobs, pick_device
from assay.lab.clusters import check_backend
from assay.lab.dispatch import Options, jobs_for
from assay.lab.events import Said
from assay.lab.execute import _commit, _processor

UNITS = 14


def newest(store):
    return store.manifest(store.manifest_ids()[-1])


def bits(frame):
    """Everything in a table, with values as their bytes: equal only when every bit is."""
    values = frame["value"].to_numpy().tobytes()
    return frame.columns, frame.drop("value").rows(), values


@pytest.fixture(scope="module")
def reference(tmp_path_factory, make_bench):
    """The table of a run that nothing disturbed, and the array of its last unit."""
    bench = make_bench(tmp_path_factory.mktemp("reference"))
    loaded = bench.load("slow", bench.run("slow", overrides={"units": str(UNITS)}).manifest)
    return bits(loaded.frame), loaded.array("path", k=UNITS - 1).tobytes()


@pytest.fixture
def overrides(tmp_path):
    return {"units": str(UNITS), "delay": "0.15", "log": str(tmp_path / "log")}


def logged(overrides) -> list[str]:
    try:
        with open(overrides["log"]) as log:
            return log.read().splitlines()
    except FileNotFoundError:
        return []


@pytest.fixture
def spawn(bench, overrides, tmp_path):
    """Start `assay run slow` in a session of its own; nothing of it outlives the test."""
    started = []

    def start(jobs: int) -> subprocess.Popen:
        command = [sys.executable, "-m", "assay.cli", "run", "slow", "--preset", "smoke", "--jobs", str(jobs)]
        command += ["--runs", str(bench.runs), "--studies", bench.outside]
        for name, value in overrides.items():
            command += ["--set", f"{name}={value}"]
        with open(tmp_path / "output", "w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until(condition, process, tmp_path):
    deadline = time.monotonic() + 90
    while not condition():
        assert process.poll() is None, (tmp_path / "output").read_text()
        assert time.monotonic() < deadline, "the other process did not come so far"
        time.sleep(0.01)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_goes_on_and_its_table_is_the_same(jobs, bench, spawn, overrides, reference, tmp_path):
    process, store = spawn(jobs), bench.store("slow")
    wait_until(lambda: len(list(store.units.glob("[!.]*"))) >= 3 and len(logged(overrides)) >= 4, process, tmp_path)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    stored = len(list(store.units.glob("[!.]*")))
    assert 3 <= stored < UNITS
    assert newest(store).status == "running"
    assert results.incomplete(store, newest(store)) == UNITS - stored

    result = bench.run("slow", jobs=jobs, overrides=overrides)
    assert (result.reused, result.computed) == (stored, UNITS - stored)
    assert result.manifest.status == "complete"
    # What was in flight is computed twice, and nothing else.
    assert len(logged(overrides)) - UNITS <= (1 if jobs == 1 else 2 * jobs)
    assert [path.name for path in store.units.glob(".tmp-*")] == []
    loaded = bench.load("slow", result.manifest)
    assert (bits(loaded.frame), loaded.array("path", k=UNITS - 1).tobytes()) == reference


@pytest.mark.parametrize("jobs", [1, 2])
def test_two_runs_at_once_share_the_work(jobs, bench, spawn, overrides, reference, tmp_path):
    process = spawn(1)
    wait_until(lambda: len(logged(overrides)) >= 1, process, tmp_path)
    result = bench.run("slow", jobs=jobs, overrides=overrides)
    assert process.wait(timeout=90) == 0, (tmp_path / "output").read_text()
    counts = Counter(line.split()[0] for line in logged(overrides))
    assert counts == {str(k): 1 for k in range(UNITS)}
    ours, theirs = result.manifest, next(m for m in manifests(bench, "slow") if m.id != result.manifest.id)
    assert (ours.status, theirs.status) == ("complete", "complete")
    assert ours.computed + theirs.computed == UNITS
    assert ours.reused + theirs.reused == UNITS
    assert theirs.computed >= 1
    for manifest in (ours, theirs):
        assert bits(bench.frame("slow", manifest)) == reference[0]


def manifests(bench, study):
    store = bench.store(study)
    return [store.manifest(run) for run in store.manifest_ids()]


def test_workers_change_nothing_in_the_table(bench, overrides, reference):
    overrides["delay"] = "0"
    result = bench.run("slow", jobs=2, overrides=overrides)
    assert (result.computed, bench.progress.total) == (UNITS, UNITS)
    assert len({line.split()[1] for line in logged(overrides)} - {str(os.getpid())}) >= 1
    assert bits(bench.frame("slow", result.manifest)) == reference[0]


def test_a_second_run_computes_nothing(bench, overrides):
    overrides |= {"delay": "0", "units": "3"}
    first = bench.run("slow", overrides=overrides)
    second = bench.run("slow", overrides=overrides)
    assert (first.computed, first.reused) == (3, 0)
    assert (second.computed, second.reused) == (0, 3)
    assert [stored for _, stored in bench.progress.finished] == [True] * 3
    assert len(logged(overrides)) == 3
    assert bits(bench.frame("slow", first.manifest)) == bits(bench.frame("slow", second.manifest))


@pytest.mark.parametrize("name", ["measurements.parquet", "arrays.safetensors", "unit.json", "SHA256SUMS"])
def test_a_flipped_byte_is_named_and_computed_again(bench, name):
    first = bench.run("slow", overrides={"units": "3"})
    table = bits(bench.frame("slow", first.manifest))
    path = bench.store("slow").units / first.manifest.units[1].key / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"{path.parent}.*run the study again"):
        bench.load("slow", first.manifest)

    second = bench.run("slow", overrides={"units": "3"})
    assert (second.computed, second.reused) == (1, 2)
    (said,) = bench.progress.said
    assert said.startswith("damaged: ")
    assert str(path.parent if name == "SHA256SUMS" else path) in said
    assert bits(bench.frame("slow", second.manifest)) == table


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_unit_that_raises_stops_no_other(bench, jobs):
    result = bench.run("faulty", jobs=jobs)
    (failure,) = result.failures
    assert failure.unit.label == "broken setting_of=second seeds 0–2"
    assert failure.error.startswith("ZeroDivisionError: the second condition is broken (")
    assert failure.error.endswith("study.py, line 24)")
    assert (result.computed, result.manifest.status) == (2, "failed")
    kept = newest(bench.store("faulty"))
    assert kept.failures[0].unit == failure.unit.label
    assert "study.py" in kept.failures[0].trace
    assert results.incomplete(bench.store("faulty"), kept) == 1

    found = {f.claim.id: f.judgement for f in results.findings(bench.store("faulty"), bench.study("faulty"), kept)}
    assert found["C1"].verdict == "holds"
    assert found["C2"].verdict == "not run"
    assert "setting_of second" in found["C2"].reason
    assert found["N1"].verdict == "holds"
    # A failure is not stored: the next run tries again.
    again = bench.run("faulty", jobs=jobs)
    assert (again.computed, again.reused, len(again.failures)) == (0, 2, 1)


def test_a_claim_outside_its_domain_is_not_run(bench):
    result = bench.run("faulty", arms="sound", overrides={"level": "3"})
    found = {f.claim.id: f for f in results.findings(bench.store("faulty"), bench.study("faulty"), result.manifest)}
    assert found["C3"].judgement.verdict == "not run"
    assert found["C3"].judgement.reason == "the claim is about levels below two"
    assert (found["C1"].judgement.verdict, found["N1"].judgement.verdict) == ("holds", "fails")
    assert found["N1"].row()["printed"] == "it is"
    assert found["N1"].row()["set"] == {"level": "3"}


def test_an_ambiguous_claim_is_not_judged_and_spares_the_others(bench, monkeypatch):
    from assay.lab.findings import Claim

    study = bench.study("faulty")
    claim = Claim("C9", "s", "s", lambda m: m.final("value_of").at_least(0), {})
    monkeypatch.setitem(study.claims, "C9", claim)
    result = bench.run("faulty")
    found = {f.claim.id: f.judgement for f in results.findings(bench.store("faulty"), study, result.manifest)}
    assert found["C9"].verdict == "not run"
    assert re.match(r"AmbiguousQuery: .*choose one by .*test_runner.py, line", found["C9"].error)
    assert found["C1"].verdict == "holds"


def test_an_interrupted_run_says_so_and_keeps_what_it_had(bench, monkeypatch):
    from assay.lab import dispatch

    genuine, seen = dispatch.execute, []

    def execute(unit, place):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(unit)
        return genuine(unit, place)

    monkeypatch.setattr(dispatch, "execute", execute)
    with pytest.raises(KeyboardInterrupt):
        bench.run("slow", overrides={"units": "5"})
    kept = newest(bench.store("slow"))
    assert (kept.status, kept.computed) == ("interrupted", 2)
    lock = bench.store("slow").try_lock(kept.units[2].key)
    assert lock is not None
    lock.release()


def test_a_run_says_that_it_waits_for_units_of_another_one(bench):
    """Of one that was stopped with Ctrl-Z, say: without a word it looks as if nothing happened."""
    store, plan = bench.store("slow"), bench.plan("slow", overrides={"units": "3"})
    store.prepare()
    lock = store.try_lock(plan.units[1].key)
    said = []

    def listen(event):
        if isinstance(event, Said) and "another run" in event.sentence:
            said.append(event.sentence)
            lock.release()

    found = runner.run(plan, store, Options(1, "loky", None, bench.outside), listen)
    assert (found.manifest.status, found.manifest.computed) == ("complete", 3)
    assert said == [f"waiting for a unit that another run is computing: {plan.units[1].label}"]


def test_an_interrupt_while_a_result_is_stored_waits_until_it_is(bench, monkeypatch):
    from assay.lab import store as stores

    genuine, written = stores.write_through, []

    def write_through(path, content):
        written.append(path)
        if len(written) == 2:
            signal.raise_signal(signal.SIGINT)
        genuine(path, content)

    monkeypatch.setattr(stores, "write_through", write_through)
    with pytest.raises(KeyboardInterrupt):
        bench.run("slow", overrides={"units": "5"})
    store = bench.store("slow")
    kept = newest(store)
    assert (kept.status, kept.computed) == ("interrupted", 1)
    assert [store.whole(path.name) for path in store.units.iterdir()] == [True]


def test_runs_are_never_pooled(bench):
    small = bench.run("slow", overrides={"units": "2"}, seeds=3).manifest
    large = bench.run("slow", overrides={"units": "3"}, seeds=4).manifest
    assert bench.frame("slow", small)["seed"].n_unique() == 3
    assert bench.frame("slow", large)["seed"].n_unique() == 4


def test_the_table_keeps_what_the_arm_recorded(bench):
    result = bench.run("slow", overrides={"units": "2"})
    loaded = bench.load("slow", result.manifest)
    assert loaded.frame.columns == ["arm", "seed", "step", "metric", "value", "k"]
    assert loaded.frame.height == 2 * 3 * 50
    path = loaded.array("path", k=1)
    assert path.shape == (3, 50)
    assert np.array_equal(loaded.final("height", k=1).array, path[:, -1].astype(np.float64))
    (note,) = loaded.notes(k=1)
    assert note["drift"] == 3**0.5
    assert loaded.params.units == 2
    assert result.manifest.versions.startswith(f"assay {version('assay-lab')}, Python ")


def test_a_left_out_arm_is_one_line_and_its_claims_are_not_run(bench, monkeypatch):
    study = bench.study("choosy")
    monkeypatch.setitem(study.arms, "needy", dataclasses.replace(study.arms["needy"], optional=False))
    result = bench.run("choosy")
    assert bench.progress.said == ["arm 'needy' is left out: it needs a GPU (--device cuda)"]
    assert result.manifest.status == "complete"
    found = {f.claim.id: f.judgement for f in results.findings(bench.store("choosy"), study, result.manifest)}
    assert found["C1"].verdict == "holds"
    assert (found["N1"].verdict, found["N1"].reason) == ("not run", "the arm 'needy' did not run")


def test_small_plans_run_in_process_and_large_ones_on_workers(bench):
    smoke, laptop = bench.plan("choosy"), bench.plan("choosy", preset="laptop")
    assert jobs_for(smoke, 10, Options()) == 1
    assert jobs_for(laptop, 10, Options()) == min(default_jobs(), 10)
    assert jobs_for(laptop, 10, Options(jobs=3)) == 3
    assert jobs_for(laptop, 2, Options(jobs=3)) == 2
    cuda = bench.plan("choosy", device="cuda")
    assert jobs_for(cuda, 10, Options()) == 1
    assert jobs_for(cuda, 10, Options(jobs=3)) == 3


def test_a_unit_runs_on_one_thread(bench):
    bench.run("slow", overrides={"units": "1"})
    assert torch.get_num_threads() == 1


def test_backends_and_devices_are_checked_before_anything_is_written(bench, monkeypatch):
    with pytest.raises(UserError, match=r"unknown backend 'threads' \(allowed: loky, ray, dask, slurm\)"):
        bench.run("slow", backend="threads")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for backend in ("ray", "dask", "slurm"):
        with pytest.raises(UserError, match="needs the extra 'cluster'"):
            check_backend(backend)
    assert not bench.runs.exists()
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert pick_device("auto") == "cpu"
    with pytest.raises(UserError, match="has no GPU"):
        pick_device("cuda")
    with pytest.raises(UserError, match="unknown device 'tpu'"):
        pick_device("tpu")


def test_the_manifest_keeps_what_was_asked_for(bench):
    plain, asked = bench.run("choosy").manifest, bench.run("choosy", seeds=3, arms="double").manifest
    assert (plain.seeds, plain.preset_seeds, plain.asked_arms) == (None, 3, None)
    assert (asked.seeds, asked.preset_seeds, asked.asked_arms) == (3, 3, "double")
    assert plain.seeds_used == asked.seeds_used == 3


def test_a_run_with_parameters_that_the_study_no_longer_has_still_loads(bench):
    manifest = bench.run("choosy").manifest
    renamed = {**manifest.params, "depth": 3}
    del renamed["rate"]
    old = manifest.model_copy(update={"params": renamed, "settings": {"wide": {**renamed, "width": 64}}})
    loaded = bench.load("choosy", old)
    assert (loaded.params.dim, loaded.params.rate, loaded.params_of("wide").width) == (4, 0.1, 64)
    with pytest.raises(NotMeasured, match="the setting 'plain' was not part of the run"):
        loaded.params_of("plain")


def test_the_machine_is_its_processor_and_cores(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: A Fine CPU @ 2 GHz\nprocessor\t: 1\nmodel name\t: Another\n")
    assert _processor(info) == f"A Fine CPU @ 2 GHz, {default_jobs()} cores"
    fallback = platform.processor() or platform.machine()
    assert _processor(tmp_path / "none") == f"{fallback}, {default_jobs()} cores"


def test_the_commit_is_that_of_a_checkout_of_this_project(tmp_path):
    inside = tmp_path / "lib" / "assay"
    inside.mkdir(parents=True)
    assert _commit(inside) == "not a checkout"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    assert _commit(inside) == "not a checkout"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "another"\n')
    assert _commit(inside) == "not a checkout"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "assay-lab"\n')
    assert len(_commit(inside)) == 40
