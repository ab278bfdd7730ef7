"""Summaries of runs: written for what a preset gives, and refused for anything else."""

from __future__ import annotations

import json

import pytest

from assay.lab import UserError, results
from assay.lab.code_version import code_version


def test_a_summary_is_written_from_a_run(bench, tmp_path):
    manifest = bench.run("choosy", preset="laptop").manifest
    store, study = bench.store("choosy"), bench.study("choosy")
    found = results.findings(store, study, manifest)
    path = results.save_summary(tmp_path / "results", store, study, manifest, found)
    summary = json.loads(path.read_text())
    assert path.name == "choosy.laptop.json"
    assert summary["claims"] == [finding.row() for finding in found]
    assert (summary["study"], summary["seeds"], summary["computed"]) == ("choosy", 8, 11)
    assert (summary["commit"], summary["code"]) == (manifest["commit"], code_version(study.module))
    seconds = sum(note["seconds"] for note in bench.load("choosy", manifest).notes())
    assert summary["unit_seconds"] == pytest.approx(seconds, abs=1e-3)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write the summary"):
        results.save_summary(tmp_path / "file", store, study, manifest, found)


def test_only_a_whole_run_of_a_preset_is_saved(bench, tmp_path):
    store, study = bench.store("choosy"), bench.study("choosy")

    def refused(manifest, why):
        with pytest.raises(UserError, match=f"is not saved, because {why}"):
            results.save_summary(tmp_path / "results", store, study, manifest, [])

    refused(bench.run("choosy").manifest, "the preset smoke only shows that everything runs;")
    refused(bench.run("choosy", preset="laptop", overrides={"dim": "5"}).manifest, "it had --set dim=5;")
    refused(bench.run("choosy", preset="laptop", seeds=7).manifest, "it had --seeds 7, fewer than the preset;")
    whole = bench.run("choosy", preset="laptop", seeds=9).manifest
    results.check_quotable(store, study, whole)
    assert not results.code_changed(study, whole)
    assert not results.code_changed(study, {key: value for key, value in whole.items() if key != "code"})
    refused({**whole, "code": "of another day"}, "the study's code has changed since;")
    old = {key: value for key, value in whole.items() if key not in ("asked_arms", "preset_seeds")}
    results.check_quotable(store, study, old)
    store.discard(whole["units"][0]["key"])
    refused(whole, "1 of its 12 units are not stored;")
    assert not (tmp_path / "results").exists()


def test_a_part_of_a_preset_is_saved_under_a_name_that_says_which(bench, tmp_path):
    store, study = bench.store("choosy"), bench.study("choosy")
    manifest = bench.run("choosy", preset="laptop", arms="linear, double").manifest
    found = results.findings(store, study, manifest)
    path = results.save_summary(tmp_path, store, study, manifest, found)
    summary = json.loads(path.read_text())
    assert (path.name, summary["arms"]) == ("choosy.laptop.double+linear.json", ["double", "linear"])
    judged = [finding.row() for finding in found if finding.judgement.verdict != "not run"]
    assert summary["claims"] == judged
    assert 0 < len(judged) < len(found)
    old = {key: value for key, value in manifest.items() if key not in ("asked_arms", "preset_seeds")}
    assert results.save_summary(tmp_path, store, study, old, found) == path


def test_a_heading_says_what_a_preset_does_not(bench):
    study = bench.study("choosy")
    asked = bench.run("choosy", overrides={"dim": "5", "width": "3"}, arms="double,linear", seeds=4).manifest
    assert results.heading(study, bench.run("choosy").manifest) == "choosy, preset smoke"
    assert results.heading(study, asked) == "choosy, preset smoke with dim=5, width=3 --arms double,linear --seeds 4"
