"""Units that another machine computed: a folder that was carried over is joined and judged without what made it."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

from assay import lab
from assay.lab import UserError, chunks, discovery, results
from assay.lab.code_version import ArmCode
from assay.lab.requirements import fingerprints
from assay.lab.store import Payload


def test_stored_units_need_no_data(bench, monkeypatch):
    before = bench.run("choosy")
    arm = bench.study("choosy").arms["double"]
    monkeypatch.setitem(bench.study("choosy").arms, "double", dataclasses.replace(arm, needs="data:nowhere"))
    after = bench.run("choosy")
    assert (after.reused, after.computed) == (before.computed, 0)
    assert bench.frame("choosy", after.manifest).equals(bench.frame("choosy", before.manifest))
    assert "double" in {unit.arm for unit in bench.plan("choosy", arms="double").units}

    one = next(unit for unit in before.manifest.units if unit.arm == "double")
    (bench.store("choosy").units / one.key / "measurements.parquet").write_bytes(b"cut")
    assert bench.plan("choosy").skipped == {"double": bench.plan("choosy").skipped["double"]}
    with pytest.raises(UserError, match="arm 'double' cannot run: it needs the data set 'nowhere'"):
        bench.plan("choosy", arms="double")


def test_stored_units_need_no_gpu(bench, monkeypatch, tmp_path):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="--device cuda was asked for, and this machine has no GPU"):
        bench.run("choosy", device="cuda")
    assert not bench.runs.exists()

    monkeypatch.setitem(chunks._BUDGET, "cuda", chunks._BUDGET["cpu"])
    store = bench.store("choosy")
    here = bench.run("choosy", preset="laptop")
    plans = [bench.plan("choosy", preset="laptop", device=device).units for device in ("cpu", "cuda")]
    for near, far in zip(*plans, strict=True):
        assert near.label == far.label
        unit = store.read(near.key, arrays=True)
        store.write(far.key, Payload.pack(unit.frame, unit.arrays, {**unit.meta, "machine": "A GPU", "versions": "1"}))
    there = bench.run("choosy", preset="laptop", device="cuda")
    assert (there.computed, there.reused) == (0, here.computed)
    study = bench.study("choosy")
    path = results.save_summary(tmp_path, store, study, there.manifest, [])
    summary = json.loads(path.read_text())
    assert (summary["device"], summary["machine"], summary["versions"]) == ("cuda", "A GPU", "1")

    shutil.rmtree(store.units / there.manifest.units[0].key)
    with pytest.raises(UserError, match="has no GPU"):
        bench.run("choosy", preset="laptop", device="cuda")


def test_pieces_of_several_machines_are_joined_without_computing(bench, monkeypatch):
    """One arm on another device, all with other packages: stored units are taken for what they are."""
    here = bench.run("choosy", preset="laptop")
    store, study = bench.store("choosy"), bench.study("choosy")
    arms = list(dict.fromkeys(unit.arm for unit in here.manifest.units))
    now = discovery.codes_of(study, arms)

    def elsewhere(device, arm):
        """The units as a machine with another torch has left them."""
        monkeypatch.setattr(
            "assay.lab.planning.codes_of",
            lambda _, names: {n: ArmCode(now[n].files, {"torch": f"9.{device}"}) for n in names},
        )
        far = bench.plan("choosy", preset="laptop", device=device, arms=arm).units
        monkeypatch.undo()
        near = [unit for unit in here.manifest.units if unit.arm == arm]
        for mine, theirs in zip(near, far, strict=True):
            unit = store.read(mine.key, arrays=True)
            code = {"files": dict(now[arm].files), "packages": {"torch": f"9.{device}"}}
            store.write(
                theirs.key, Payload.pack(unit.frame, unit.arrays, {**unit.meta, "device": device, "code": code})
            )
            shutil.rmtree(store.units / mine.key)

    before = bench.frame("choosy", here.manifest)
    monkeypatch.setitem(chunks._BUDGET, "cuda", chunks._BUDGET["cpu"])
    for place, arm in enumerate(arms):
        elsewhere("cuda" if place == 0 else "cpu", arm)
    monkeypatch.setitem(chunks._BUDGET, "cuda", chunks._BUDGET["cpu"])
    assert bench.plan("choosy", preset="laptop").to_reuse == []
    joined = lab.run("choosy", preset="laptop", stored=True, runs=bench.runs, studies=bench.outside)
    assert (joined.manifest.computed, joined.manifest.reused) == (0, len(here.manifest.units))
    assert joined.manifest.device == "cpu, cuda"
    assert joined.measurements.equals(before)
    results.check_quotable(store, study, joined.manifest)

    gone = joined.manifest.units[0]
    for damage in (
        lambda: (store.units / gone.key / "measurements.parquet").write_bytes(b"cut"),
        lambda: shutil.rmtree(store.units / gone.key),
    ):
        damage()
        with pytest.raises(UserError, match=rf"not stored whole: {gone.arm} \(1 of \d+ units\)"):
            lab.run("choosy", preset="laptop", stored=True, runs=bench.runs, studies=bench.outside)


def test_a_summary_names_every_machine(bench, tmp_path):
    manifest = bench.run("choosy", preset="laptop").manifest
    store = bench.store("choosy")
    first = manifest.units[0].key
    unit = store.read(first, arrays=True)
    store.write(first, Payload.pack(unit.frame, unit.arrays, {**unit.meta, "machine": "Elsewhere"}))
    path = results.save_summary(tmp_path, store, bench.study("choosy"), manifest, [])
    assert json.loads(path.read_text())["machine"] == f"Elsewhere; {unit.meta['machine']}"


def test_exchanged_data_are_noticed(bench, monkeypatch, tmp_path):
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    (folder / "train-0.parquet").write_bytes(b"one")
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))
    arm = bench.study("choosy").arms["double"]
    monkeypatch.setitem(bench.study("choosy").arms, "double", dataclasses.replace(arm, needs="data:tiny"))
    monkeypatch.setattr("assay.data.catalog.obtainable", lambda name: None)

    def run():
        result = bench.run("choosy", arms="double")
        return result.computed, result.reused

    assert run() == (1, 0)
    assert run() == (0, 1)
    (folder / "train-0.parquet").write_bytes(b"two")
    assert run() == (1, 0)
    assert bench.progress.said == ["arm 'double' is computed: `tiny` changed since"]
    (folder / "train-0.parquet").unlink()  # where the set is absent there is nothing to compare
    assert run() == (0, 1)


def test_exchanged_images_of_a_domain_are_noticed(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    image = tmp_path / "mine" / "photo" / "cat" / "0.png"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"one")
    seen = [fingerprints("data:mine", {})]
    image.write_bytes(b"three")
    seen.append(fingerprints("data:mine", {}))
    image.parent.rename(image.parent.with_name("dog"))
    seen.append(fingerprints("data:mine", {}))
    assert len({each["mine"] for each in seen}) == 3
    assert fingerprints("data:pacs", {}) == {}
