"""The store: whole, checked, atomic, and locked across processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from assay.lab import UserError
from assay.lab.manifest import Manifest
from assay.lab.store import DamagedUnit, Payload, Store, unit_key

FILES = ["measurements.parquet", "arrays.safetensors", "unit.json", "SHA256SUMS"]
FRAME = pl.DataFrame({"seed": [0, 1], "step": [None, 3], "metric": ["a", "b"], "value": [0.1, float("nan")]})
ARRAYS = {"w@2": np.arange(6, dtype=np.float32).reshape(2, 3), "mask": np.array([True, False])}
META = {"study": "s", "notes": {"rate": 0.1}, "seconds": 1.5}
KEY = "0123456789abcdef"


def payload(value: float = 0.1) -> Payload:
    return Payload.pack(FRAME.with_columns(extra=pl.lit(value)), ARRAYS, META)


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "runs", "study")
    made.prepare()
    return made


@pytest.fixture
def full(store):
    store.write(KEY, payload())
    return store


def flip(path, at, bits=0xFF):
    content = bytearray(path.read_bytes())
    content[at] ^= bits
    path.write_bytes(bytes(content))


def test_round_trip(full):
    assert full.has(KEY)
    assert not full.has("another")
    stored = full.read(KEY, arrays=True)
    assert stored.frame.equals(FRAME.with_columns(extra=pl.lit(0.1)))
    assert {name: array.tolist() for name, array in stored.arrays.items()} == {
        name: array.tolist() for name, array in ARRAYS.items()
    }
    assert stored.arrays["w@2"].dtype == np.float32
    assert stored.meta == META
    assert full.read(KEY).arrays == {}
    assert sorted(path.name for path in (full.units / KEY).iterdir()) == sorted(FILES)


def test_a_unit_without_arrays(store):
    store.write(KEY, Payload.pack(FRAME, {}, META))
    assert store.read(KEY, arrays=True).arrays == {}


def test_a_unit_is_replaced_whole(full):
    full.write(KEY, payload(0.2))
    assert full.read(KEY).frame["extra"].to_list() == [0.2, 0.2]
    assert [path.name for path in full.units.iterdir()] == [KEY]


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_detected_and_named(full, name):
    path = full.units / KEY / name
    content = path.read_bytes()
    positions = range(len(content)) if name == "SHA256SUMS" else np.linspace(0, len(content) - 1, 40, dtype=int)
    for at in positions:
        for bits in (0x01, 0x20, 0xFF):  # a neighbour, a change of case, a byte that is no text
            flip(path, at, bits)
            for look in (full.has, full.read):
                with pytest.raises(DamagedUnit) as caught:
                    look(KEY)
                assert str(full.units / KEY) in str(caught.value)
                if name != "SHA256SUMS":
                    assert str(path) in str(caught.value)
            path.write_bytes(content)
    assert full.has(KEY)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["gone", "empty", "cut"])
def test_a_missing_or_cut_file_is_detected_and_named(full, name, how):
    path = full.units / KEY / name
    content = path.read_bytes()
    path.unlink()
    if how != "gone":
        path.write_bytes(content[: len(content) // 2] if how == "cut" else b"")
    with pytest.raises(DamagedUnit, match=name if how != "cut" or name != "SHA256SUMS" else KEY):
        full.has(KEY)


def test_a_missing_unit_cannot_be_read(store):
    with pytest.raises(DamagedUnit, match="is missing"):
        store.read(KEY)


@pytest.mark.parametrize("failing", FILES)
def test_a_write_that_fails_leaves_nothing_and_keeps_what_was_there(full, monkeypatch, failing):
    from assay.lab import store as module

    genuine = module.write_through

    def broken(path, content):
        genuine(path, content[: len(content) // 2] if path.name == failing else content)
        if path.name == failing:
            raise OSError("no space left on device")

    monkeypatch.setattr(module, "write_through", broken)
    for key in (KEY, "another"):
        with pytest.raises(UserError, match=rf"cannot write .*{key}: no space"):
            full.write(key, payload(0.2))
    assert [path.name for path in full.units.iterdir()] == [KEY]
    assert full.read(KEY).frame["extra"].to_list() == [0.1, 0.1]


def test_damaged_notes_of_a_unit_are_none_at_all(full):
    """A byte of a name in it may flip and leave a whole JSON document with another name."""
    assert full.meta(KEY) == META
    path = full.units / KEY / "unit.json"
    path.write_bytes(path.read_bytes().replace(b"study", b"studz"))
    assert json.loads(path.read_bytes())["studz"] == "s"
    assert full.meta(KEY) is None
    path.unlink()
    assert full.meta(KEY) is None


def test_discard_takes_a_unit_away(full):
    full.discard(KEY)
    full.discard(KEY)
    assert not full.has(KEY)
    assert list(full.units.iterdir()) == []


def test_leftovers_are_swept_unless_their_writer_lives(full):
    dead = full.units / f".tmp-{KEY}~123-abcd"
    old = full.units / f".tmp-old-{KEY}~abcd"
    alive = full.units / ".tmp-fedcba~123-abcd"
    for folder in (dead, old, alive):
        folder.mkdir()
        (folder / "measurements.parquet").write_bytes(b"half")
    lock = full.try_lock("fedcba")
    full.sweep_leftovers()
    assert sorted(path.name for path in full.units.iterdir()) == sorted([KEY, alive.name])
    lock.release()
    full.sweep_leftovers()
    assert [path.name for path in full.units.iterdir()] == [KEY]


def test_half_written_manifests_of_dead_runs_are_swept(store):
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    dead = store.manifests / f".tmp-1-a.json-{gone.pid}"
    alive = store.manifests / f".tmp-2-b.json-{os.getpid()}"
    for path in (dead, alive):
        path.write_text("{")
    store.sweep_leftovers()
    assert list(store.manifests.iterdir()) == [alive]
    assert store.manifest_ids() == []


def test_locks_hold_across_processes_and_die_with_their_holder(store):
    # Only the kernel's lock is at stake, so the other process does without the lab and its imports.
    script = (
        "import fcntl, os, sys, time\n"
        "handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(handle, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-S", "-c", script, store.locks / KEY], stdout=subprocess.PIPE, text=True
    )
    try:
        with holder.stdout:
            assert holder.stdout.readline() == "held\n"
            assert store.try_lock(KEY) is None
            other = store.try_lock("another")
            assert other is not None
            other.release()
            holder.kill()
            holder.wait()
        lock = store.try_lock(KEY, wait=True)
        assert lock is not None
        assert store.try_lock(KEY) is None
        lock.release()
        lock.release()  # releasing twice is harmless
        again = store.try_lock(KEY)
        assert again is not None
        again.release()
    finally:
        holder.kill()
        holder.wait()


def test_locks_are_not_inherited_by_workers(store):
    lock = store.try_lock(KEY)
    opened = {Path(f"/proc/self/fd/{name}").resolve(): int(name) for name in os.listdir("/proc/self/fd")}
    assert not os.get_inheritable(opened[store.locks / KEY])
    lock.release()


def manifest(run: str, preset: str, **more) -> Manifest:
    given = dict(study="s", set={"bias": "0.6"}, seeds=None, preset_seeds=3, asked_arms=None, arms=[], skipped={})
    given |= dict(device="cpu", params={}, settings={}, units=[], code={}, started="now", versions="", machine="")
    return Manifest(**{**given, "id": run, "preset": preset, "commit": "", **more})


def newest(store):
    return store.manifest(store.manifest_ids()[-1])


def test_manifests_by_id_and_by_name(store):
    assert store.manifest_ids() == []
    for run, preset in (("2-b", "laptop"), ("1-a", "smoke"), ("3-c", "smoke"), ("4-d", "paper")):
        store.write_manifest(manifest(run, preset, name="best" if run in ("1-a", "3-c") else ""))
    assert store.manifest_ids() == ["1-a", "2-b", "3-c", "4-d"]
    assert store.manifest("2-b") == manifest("2-b", "laptop")
    assert store.manifest("best").id == "3-c"
    with pytest.raises(UserError, match="unknown run '5-e'"):
        store.manifest("5-e")


def test_a_manifest_is_replaced_whole_and_survives_odd_values(store):
    store.write_manifest(manifest("1-a", "smoke"))
    odd = manifest("1-a", "smoke", seconds=0.1 + 0.2, failures=[{"unit": "u", "error": "é\n“x”"}])
    store.write_manifest(odd)
    assert store.manifest("1-a") == odd
    assert [path.name for path in store.manifests.iterdir()] == ["1-a.json"]


def test_a_flipped_byte_in_a_manifest_is_detected_and_named(store):
    store.write_manifest(manifest("1-a", "smoke", seconds=1.25))
    path = store.manifests / "1-a.json"
    content = path.read_bytes()
    for at in range(len(content)):
        for bits in (0x01, 0x20, 0xFF):
            flip(path, at, bits)
            with pytest.raises(UserError, match=r"manifest .*1-a\.json is damaged"):
                newest(store)
            path.write_bytes(content)
    assert newest(store).seconds == 1.25


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "3", '{"id": "1-a"}', json.dumps({"id": "1-a", "units": []})])
def test_another_text_is_no_manifest(store, text):
    (store.manifests / "1-a.json").write_text(text)
    with pytest.raises(UserError, match="is damaged"):
        newest(store)


def test_verdicts_are_kept_sealed(store):
    assert store.read_verdicts("1-a") is None
    store.write_verdicts("1-a", {"judged_by": "x", "claims": [1, 2]})
    assert store.read_verdicts("1-a") == {"judged_by": "x", "claims": [1, 2]}
    flip(store.verdicts / "1-a.json", 12, 0x01)
    assert store.read_verdicts("1-a") is None


def test_a_unit_is_checked_once_and_again_when_it_was_written(full, monkeypatch):
    from assay.lab import files as module

    seen, genuine = [], module.sha
    monkeypatch.setattr(module, "sha", lambda content: (seen.append(len(content)), genuine(content))[1])
    fresh = Store(full.runs, full.study)
    assert fresh.has(KEY)
    once = len(seen)
    for _ in range(3):
        assert fresh.has(KEY)
        fresh.read(KEY, arrays=True)
        fresh.checksums([KEY])
    assert len(seen) == once
    flip(full.units / KEY / "measurements.parquet", 10, 0x01)
    with pytest.raises(DamagedUnit):
        fresh.has(KEY)


def test_stored_ranges_are_read_off_the_names(store):
    address = "0123456789abcdef01234567"
    for first, last in ((0, 7), (8, 15), (4, 4)):
        store.write(unit_key(address, "", tuple(range(first, last + 1))), payload())
    store.write(unit_key(address, "0123abcd", (0, 1)), payload())
    store.write("an-old-key", payload())
    found = store.ranges()
    ranges = [(r.inputs, r.first, r.last) for r in found[address]]
    assert sorted(ranges) == [("", 0, 7), ("", 4, 4), ("", 8, 15), ("0123abcd", 0, 1)]
    assert list(found) == [address]


def test_removing_a_run_takes_the_units_that_no_other_has(store):
    for key in ("a", "b", "c"):
        store.write(key, payload())
    unit = {"arm": "x", "point": {}, "seeds": [0]}
    store.write_manifest(manifest("1-a", "smoke", units=[{"key": "a", **unit}, {"key": "b", **unit}]))
    store.write_manifest(manifest("2-b", "smoke", units=[{"key": "b", **unit}, {"key": "c", **unit}]))
    store.write_verdicts("1-a", {})
    before = store.size(["a"])
    assert store.remove_run("1-a") >= before > 0
    assert sorted(path.name for path in store.units.iterdir()) == ["b", "c"]
    assert store.manifest_ids() == ["2-b"]
    assert store.read_verdicts("1-a") is None


def test_a_run_at_work_is_not_removed_and_unknown_runs_keep_their_units(store):
    store.write("a", payload())
    unit = {"key": "a", "arm": "x", "point": {}, "seeds": [0]}
    store.write_manifest(manifest("1-a", "smoke", units=[unit]))
    lock = store.try_lock("a")
    with pytest.raises(UserError, match="still at work"):
        store.remove_run("1-a")
    lock.release()
    (store.manifests / "0-x.json").write_text("damaged")
    store.remove_run("1-a")
    assert [path.name for path in store.units.iterdir()] == ["a"]


def test_an_unwritable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"cannot write to the runs folder .*file"):
        Store(tmp_path / "file" / "runs", "study").prepare()


@pytest.mark.parametrize("name", ["units", "manifests", "locks"])
def test_each_folder_must_take_files_before_any_work_is_done(store, monkeypatch, name):
    genuine = Path.touch

    def touch(path, *arguments, **options):
        if path.parent.name == name:
            raise PermissionError(13, "Permission denied")
        genuine(path, *arguments, **options)

    monkeypatch.setattr(Path, "touch", touch)
    with pytest.raises(UserError, match=rf"cannot write to the runs folder .*{name}: Permission denied"):
        store.prepare()


@pytest.mark.parametrize("name", ["units", "manifests", "locks"])
def test_a_file_in_place_of_a_folder_is_named(tmp_path, name):
    store = Store(tmp_path, "study")
    store.root.mkdir()
    (store.root / name).write_text("in the way")
    with pytest.raises(UserError, match=rf"cannot write to the runs folder .*{name}: File exists"):
        store.prepare()


def test_probing_leaves_nothing_behind(store):
    assert [list(folder.iterdir()) for folder in (store.units, store.manifests, store.locks)] == [[], [], []]


def test_a_folder_that_stops_taking_files_gets_one_sentence(store):
    for folder in (store.units, store.manifests, store.locks):
        folder.rmdir()
        folder.write_text("in the way")
    with pytest.raises(UserError, match=rf"cannot write .*{KEY}: Not a directory"):
        store.write(KEY, payload())
    with pytest.raises(UserError, match=rf"cannot lock .*{KEY}: "):
        store.try_lock(KEY)
    with pytest.raises(UserError, match=r"cannot write .*1-a\.json: Not a directory"):
        store.write_manifest(manifest("1-a", "smoke"))


def test_a_lock_that_the_file_system_does_not_give_gets_one_sentence(store, monkeypatch):
    def refuse(handle, how):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(UserError, match=rf"cannot lock .*{KEY}: No locks available"):
        store.try_lock(KEY)
    assert len(os.listdir("/proc/self/fd")) == before


def refuse_to_read(monkeypatch, error, *names):
    """Make reading files and listing folders of these names fail, as it would for a user without the right."""
    read, listed = Path.read_bytes, os.listdir

    def checked(genuine):
        def call(path):
            if Path(path).name in names:
                raise error
            return genuine(path)

        return call

    monkeypatch.setattr(Path, "read_bytes", checked(read))
    monkeypatch.setattr(os, "listdir", checked(listed))


@pytest.mark.parametrize("name", FILES)
def test_a_unit_that_may_not_be_read_is_neither_missing_nor_damaged(full, monkeypatch, name):
    # Damage would be computed again, and the unit thrown away, which is whole.
    refuse_to_read(monkeypatch, PermissionError(13, "Permission denied"), name)
    for look in (full.has, full.whole, full.read):
        with pytest.raises(UserError, match=rf"cannot read .*{name}: Permission denied"):
            look(KEY)


def test_a_file_that_the_disk_cannot_give_back_is_damaged(full, monkeypatch):
    refuse_to_read(monkeypatch, OSError(5, "Input/output error"), "unit.json")
    with pytest.raises(DamagedUnit, match=r"unit\.json cannot be read: Input/output error"):
        full.has(KEY)


def test_manifests_that_may_not_be_read_are_not_absent(store, monkeypatch):
    store.write_manifest(manifest("1-a", "smoke"))
    refuse_to_read(monkeypatch, PermissionError(13, "Permission denied"), "manifests")
    with pytest.raises(UserError, match=r"cannot read .*manifests: Permission denied"):
        newest(store)
    monkeypatch.undo()
    refuse_to_read(monkeypatch, PermissionError(13, "Permission denied"), "1-a.json")
    with pytest.raises(UserError, match=r"cannot read .*1-a\.json: Permission denied"):
        newest(store)


def test_a_run_whose_units_may_not_be_read_is_refused(store, monkeypatch):
    store.write_manifest(manifest("1-a", "smoke"))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "units")
    with pytest.raises(UserError, match=r"cannot read .*units: Permission denied"):
        newest(store)
