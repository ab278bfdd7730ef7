"""Summaries of runs: written for what a preset gives, and refused for anything else."""

from __future__ import annotations

import dataclasses
import json

import pytest

from assay.lab import UserError, planning, results
from assay.lab.code_version import arm_codes
from assay.lab.manifest import Manifest


def saved(found):
    """Findings as a summary keeps them: the run that they come from is not part of what it says."""
    return [{name: value for name, value in finding.row().items() if name != "run"} for finding in found]


def test_a_summary_is_written_from_a_run(bench, tmp_path):
    manifest = bench.run("choosy", preset="laptop").manifest
    store, study = bench.store("choosy"), bench.study("choosy")
    found = results.findings(store, study, manifest)
    path = results.save_summary(tmp_path / "results", store, study, manifest, found)
    summary = json.loads(path.read_text())
    assert path.name == "choosy.laptop.json"
    assert summary["claims"] == saved(found)
    assert (summary["study"], summary["seeds"], summary["computed"]) == ("choosy", 8, 11)
    codes = {arm: code.source for arm, code in arm_codes(study).items() if arm in manifest.arms}
    assert (summary["commit"], summary["code"]) == (manifest.commit, codes)
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
    assert not results.code_changed(study, whole.model_copy(update={"code": {}}))
    edited = whole.model_copy(update={"code": {**whole.code, "double": "of another day"}})
    assert results.code_changed(study, edited) == ["double"]
    refused(edited, "the study's code has changed since;")
    refused(whole.model_copy(update={"point": {"setting": "wide"}}), "it had --point setting=wide;")
    refused(whole.model_copy(update={"first_seed": 100}), "it had --first-seed 100;")
    store.discard(whole.units[0].key)
    refused(whole, "1 of its 16 units are not stored;")
    assert not (tmp_path / "results").exists()


def test_a_part_of_a_preset_is_saved_under_a_name_that_says_which(bench, tmp_path):
    store, study = bench.store("choosy"), bench.study("choosy")
    manifest = bench.run("choosy", preset="laptop", arms="linear, double").manifest
    found = results.findings(store, study, manifest)
    path = results.save_summary(tmp_path, store, study, manifest, found)
    summary = json.loads(path.read_text())
    assert (path.name, summary["arms"]) == ("choosy.laptop.double+linear.json", ["double", "linear"])
    judged = [finding for finding in found if finding.judgement.verdict != "not run"]
    assert summary["claims"] == saved(judged)
    assert 0 < len(judged) < len(found)


def test_a_part_of_many_arms_has_a_name_that_every_file_system_takes(bench, tmp_path):
    store, study = bench.store("choosy"), bench.study("choosy")
    manifest = bench.run("choosy", preset="laptop", arms="linear,double").manifest
    names = []
    for last in ("z", "zz"):
        asked = ",".join([*(f"arm-{k:02}" for k in range(40)), last])
        path = results.save_summary(tmp_path, store, study, manifest.model_copy(update={"asked_arms": asked}), [])
        assert path.exists()
        assert path.name.startswith("choosy.laptop.arm-00+arm-01+arm-02+")
        assert len(path.name) <= 255
        names.append(path.name)
    assert names[0] != names[1]
    assert all("+16-more-" in name for name in names)


def test_a_heading_says_what_a_preset_does_not(bench):
    asked = bench.run("choosy", overrides={"dim": "5", "width": "3"}, arms="double,linear", seeds=4).manifest
    assert bench.run("choosy").manifest.heading == "choosy, preset smoke"
    assert asked.heading == "choosy, preset smoke with dim=5, width=3 --arms double,linear --seeds 4"


def test_a_run_names_its_data_and_is_saved_beside_what_everybody_gets(bench, tmp_path, monkeypatch):
    store, study = bench.store("choosy"), bench.study("choosy")
    saved_as = []
    for sets in (("digits",), ("digits", "larger")):
        needs = tuple(f"data:{name}" for name in sets)
        monkeypatch.setitem(study.arms, "double", dataclasses.replace(study.arms["double"], needs=needs))
        monkeypatch.setattr(planning, "missing_requirement", lambda needs, device: None)
        monkeypatch.setattr(planning, "fingerprints", lambda needs, files: {})
        manifest = bench.run("choosy", preset="laptop").manifest
        assert manifest.heading == f"choosy, preset laptop on {' and '.join(sets)}"
        path = results.save_summary(tmp_path, store, study, manifest, [])
        assert json.loads(path.read_text())["data"] == list(sets)
        saved_as.append(path.name)
    assert saved_as == ["choosy.laptop.json", "choosy.laptop.larger.json"]


def first_format(manifest: Manifest) -> dict:
    """A manifest as it was written before runs had a format."""
    document = manifest.document()
    for name in ("format", "name", "point", "first_seed"):
        del document[name]
    return {**document, "code": "of all arms"}


def test_manifests_of_the_first_format_still_open(bench):
    manifest = bench.run("choosy").manifest
    old = Manifest.read(first_format(manifest), "here")
    assert (old.units, old.whole, old.point, old.first_seed) == (manifest.units, True, {}, 0)
    assert old.code == dict.fromkeys(manifest.arms, "of all arms")
    assert results.code_changed(bench.study("choosy"), old) == manifest.arms
    # The earliest did not keep what was asked for, and so cannot be taken for a whole preset.
    bare = {key: value for key, value in first_format(manifest).items() if key not in ("asked_arms", "preset_seeds")}
    assert not Manifest.read(bare, "here").whole
    assert bench.frame("choosy", Manifest.read(bare, "here")).equals(bench.frame("choosy", manifest))


def test_a_manifest_that_cannot_be_understood_gets_one_sentence(bench):
    document = bench.run("choosy").manifest.document()
    with pytest.raises(UserError, match="newer version of assay"):
        Manifest.read({**document, "format": 99}, "here")
    del document["units"]
    with pytest.raises(UserError, match=r"the manifest here cannot be read .units"):
        Manifest.read(document, "here")
