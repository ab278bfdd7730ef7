"""What is stored is reused exactly when it would come out the same: edits, files, seeds, workers with other code."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from assay import lab
from assay.lab import UserError, discovery
from assay.lab.execute import Place, execute
from assay.lab.files import SUMS, sums
from assay.lab.planning import make_plan
from assay.lab.store import Store
from assay.lab.units import Request

STUDY = '''"""Arms that reach a helper, a library on the path, a declared file, or none of them."""

from pathlib import Path

from pydantic import Field

from assay import lab

from . import learners


class Params(lab.Params):
    scale: float = Field(1.0, description="a factor")
    table: str = Field("table.txt", description="a file")


study = lab.Study(
    "reuse",
    title="Reuse",
    question="What is computed again?",
    source="the store",
    params=Params,
    presets={name: lab.Preset(seeds=3, cost="1 s") for name in ("smoke", "laptop", "paper")},
)


@study.arm("helped", uses=("scale",))
def helped(params, seeds, record):
    record(value=learners.helper(seeds.normal("x", 4)).sum(1) * params.scale)


@study.arm("library", uses=())
def library(params, seeds, record):
    record(value=learners.from_library(seeds.normal("x", 4)))


@study.arm("reading", uses=("table",), reads=lambda p: [p.table])
def reading(params, seeds, record):
    record(value=float((Path(__file__).parent / params.table).read_text()))


@study.arm("plain", uses=())
def plain(params, seeds, record):
    record(value=seeds.normal("x", 4).sum(1))
'''
LEARNERS = """from reuselib.sums import total


def helper(x):
    return 2 * x


def from_library(x):
    return total(x)
"""
CLAIMS = """from . import late_arms  # noqa: F401
from .study import study


@study.claim("C1", "The sum of four normal draws is finite.", source="here")
def finite(m):
    return m.every("value", arm="plain").between(-100, 100)


@study.claim("N1", "The sum of four normal draws is not zero.", source="control")
def nonzero(m):
    return m.every("value", arm="plain").at_least(-100)
"""
LATE = """from .study import study


@study.arm("late", uses=())
def late(params, seeds, record):
    record(value=seeds.normal("x", 4).sum(1) + 1)
"""


class Workshop:
    """A study in a folder of its own, edited between runs."""

    def __init__(self, folder, path) -> None:
        self.folder = folder / "reuse"
        self.folder.mkdir(parents=True)
        self.path = path / "reuselib"
        self.path.mkdir(parents=True)
        self.rooms = {"study": STUDY, "learners": LEARNERS, "claims": CLAIMS, "late_arms": LATE}
        for room, text in self.rooms.items():
            (self.folder / f"{room}.py").write_text(text)
        (self.folder / "table.txt").write_text("1.0")
        (self.path / "__init__.py").write_text("")
        (self.path / "sums.py").write_text("def total(x):\n    return x.sum(1)\n\n\ndef unused():\n    return 1\n")
        self.where = dict(preset="smoke", studies=folder, runs=folder.parent / "runs")

    def edit(self, room: str, old: str, new: str) -> None:
        path = self.folder / f"{room}.py"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def run(self, **request) -> dict[str, int]:
        """How many units of each arm a run computes; what it says goes to ``said``."""
        computed: dict[str, int] = {}
        self.said: list[str] = []

        def listen(event: lab.Event) -> None:
            if isinstance(event, lab.UnitDone) and not event.reused:
                computed[event.unit.arm] = computed.get(event.unit.arm, 0) + 1
                assert not event.error
            if isinstance(event, lab.Said):
                self.said.append(event.sentence)

        self.last = lab.run("reuse", on_event=listen, **{**self.where, **request})
        return computed


ALL = {"helped": 1, "library": 1, "reading": 1, "plain": 1, "late": 1}


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    yield Workshop(tmp_path / "studies", tmp_path / "path")
    for name in [name for name in sys.modules if name.partition(".")[0] == "reuselib"]:
        del sys.modules[name]


def test_a_second_run_computes_nothing(workshop):
    assert workshop.run() == ALL
    assert (workshop.run(), workshop.said) == ({}, [])


def test_an_edited_helper_reruns_the_arms_that_reach_it(workshop):
    workshop.run()
    before = workshop.last.results.final("value", arm="helped").array
    workshop.edit("learners", "2 * x", "3 * x")
    assert workshop.run() == {"helped": 1}
    assert workshop.said == ["arm 'helped' is computed: `learners.py` changed since"]
    assert np.allclose(workshop.last.results.final("value", arm="helped").array, 1.5 * before)


def test_an_edited_library_on_the_path_reruns_the_arms_that_reach_it(workshop):
    workshop.run()
    (workshop.path / "sums.py").write_text("def total(x):\n    return x.sum(1) + 1\n")
    assert workshop.run() == {"library": 1}
    assert workshop.said == ["arm 'library' is computed: `reuselib/sums.py` changed since"]
    (workshop.path / "sums.py").write_text("def total(x):\n    return x.sum(1) + 1\n\n\ndef unused():\n    return 2\n")
    assert workshop.run() == {}


def test_an_exchanged_file_reruns_the_arm_that_declares_it(workshop):
    workshop.run()
    (workshop.folder / "table.txt").write_text("2.0")
    assert lab.plan("reuse", **workshop.where).reasons == {"reading": "`table.txt` changed since"}
    assert workshop.run() == {"reading": 1}
    assert workshop.last.results.final("value", arm="reading").array.tolist() == [2.0] * 3
    # Both are kept: a run from before still tells what it told.
    second = workshop.last
    (workshop.folder / "table.txt").write_text("1.0")
    assert workshop.run() == {}
    assert workshop.last.results.final("value", arm="reading").array.tolist() == [1.0] * 3
    again = lab.open_run("reuse", second.id, runs=workshop.where["runs"], studies=workshop.where["studies"])
    assert again.results.final("value", arm="reading").array.tolist() == [2.0] * 3


def test_a_folder_and_a_missing_file_are_declared_too(workshop):
    workshop.edit("study", "reads=lambda p: [p.table]", 'reads=("table.txt", "tables")')
    with pytest.raises(UserError, match=r"arm 'reading' cannot run: it reads 'tables', and there is no"):
        workshop.run(arms="reading")
    assert "reading" not in workshop.run()
    assert any("arm 'reading' is left out: it reads 'tables'" in sentence for sentence in workshop.said)
    (workshop.folder / "tables" / "deep").mkdir(parents=True)
    (workshop.folder / "tables" / "deep" / "a.txt").write_text("1")
    assert workshop.run() == {"reading": 1}
    assert workshop.run() == {}
    (workshop.folder / "tables" / "deep" / "a.txt").write_text("2")
    assert workshop.run() == {"reading": 1}


def test_a_file_that_is_exchanged_while_its_arm_runs_stores_nothing(workshop):
    code = "    (Path(__file__).parent / params.table).write_text(str(__import__('time').time_ns()))\n"
    workshop.edit("study", "def reading(params, seeds, record):\n", f"def reading(params, seeds, record):\n{code}")
    run = lab.run("reuse", arms="reading", **workshop.where)
    assert "not those that the run was planned with" in run.manifest.failures[0].error
    assert not list(run.store.units.iterdir())


def test_an_arm_of_a_module_that_only_the_claims_import_is_noticed(workshop):
    workshop.run()
    workshop.edit("late_arms", "+ 1)", "+ 2)")
    assert workshop.run() == {"late": 1}


def test_a_claim_a_figure_and_a_new_arm_rerun_nothing(workshop):
    workshop.run()
    workshop.edit("claims", "between(-100, 100)", "between(-50, 50)")
    (workshop.folder / "figures.py").write_text("from .study import study\n")
    workshop.edit("study", '"""Arms that reach', '"""Some arms that reach')
    workshop.edit("study", "seeds=3", "seeds=3, scale=1.0")
    assert workshop.run() == {}
    assert workshop.last.claims["C1"].judgement.criterion.endswith("[-50, 50]")
    text = (workshop.folder / "study.py").read_text()
    more = '\n\n@study.arm("third", uses=())\ndef third(params, seeds, record):\n    record(value=1.0)\n'
    (workshop.folder / "study.py").write_text(text + more)
    assert workshop.run() == {"third": 1}


def test_a_new_value_of_a_parameter_says_so(workshop):
    workshop.run()
    assert workshop.run(set={"scale": 2.0}) == {"helped": 1}
    assert workshop.said == ["arm 'helped' is computed: new parameter value scale=2.0 (stored: 1.0)"]


def test_seeds_extend(workshop):
    workshop.run(seeds=4)
    first = workshop.last.measurements
    assert lab.plan("reuse", **workshop.where, seeds=8).reasons["plain"] == "seeds 4–7 are new"
    assert workshop.run(seeds=8) == ALL
    units = [unit for unit in workshop.last.manifest.units if unit.arm == "plain"]
    assert [unit.seeds for unit in units] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    whole = workshop.last.measurements
    assert whole["seed"].n_unique() == 8
    assert whole.filter(whole["seed"] < 4).sort("arm", "seed").equals(first.sort("arm", "seed"))
    # Fewer are a part of what is stored, and other ones the rest.
    assert workshop.run(seeds=6) == {}
    assert workshop.last.measurements["seed"].n_unique() == 6
    assert workshop.run(seeds=2, first_seed=3) == {}
    assert sorted(workshop.last.measurements["seed"].unique()) == [3, 4]
    assert workshop.run(seeds=4, first_seed=6) == ALL
    assert workshop.said == ["arms 'helped', 'library', 'reading', 'plain', 'late' are computed: seeds 8–9 are new"]
    assert {len(workshop.last.results.final("value", arm=arm).array) for arm in ALL} == {4}


def test_a_gap_between_stored_seeds_is_filled(workshop):
    workshop.run(seeds=2)
    workshop.run(seeds=2, first_seed=6)
    assert workshop.run(seeds=9) == dict.fromkeys(ALL, 2)
    units = [unit.seeds for unit in workshop.last.manifest.units if unit.arm == "plain"]
    assert units == [[0, 1], [2, 3, 4, 5], [6, 7], [8]]


def test_arrays_of_a_part_of_the_stored_seeds(bench):
    bench.run("slow", seeds=5, overrides={"units": "1"})
    whole = bench.load("slow", bench.run("slow", seeds=5, overrides={"units": "1"}).manifest).array("path", k=0)
    few = bench.run("slow", seeds=3, overrides={"units": "1"})
    assert (few.computed, few.reused) == (0, 1)
    assert np.array_equal(bench.load("slow", few.manifest).array("path", k=0), whole[:3])


def test_a_damaged_unit_with_more_seeds_than_are_wanted_is_computed_for_those(bench):
    stored = bench.run("slow", seeds=5, overrides={"units": "1"}).manifest.units[0]
    path = bench.store("slow").units / stored.key / "measurements.parquet"
    path.write_bytes(path.read_bytes()[:-3])
    few = bench.run("slow", seeds=3, overrides={"units": "1"})
    assert (few.computed, few.reused) == (1, 0)
    assert [unit.seeds for unit in few.manifest.units] == [[0, 1, 2]]
    assert few.manifest.units[0].key != stored.key
    assert bench.frame("slow", few.manifest)["seed"].n_unique() == 3


def test_each_stored_unit_is_verified_once_per_run(workshop, monkeypatch):
    from assay.lab import store as module

    workshop.run()
    seen, genuine = [], module.verify
    monkeypatch.setattr(module, "verify", lambda folder: (seen.append(folder.name), genuine(folder))[1])
    workshop.run()
    assert workshop.last.claims.counts
    assert workshop.last.measurements.height
    assert sorted(seen) == sorted(unit.key for unit in workshop.last.manifest.units)


def test_a_worker_with_other_code_refuses_the_unit(workshop, tmp_path):
    outside = str(workshop.folder.parent)
    plan = make_plan(discovery.find("reuse", outside), Request("smoke"), Store(tmp_path / "runs", "reuse"))
    unit = next(unit for unit in plan.units if unit.arm == "helped")
    assert execute(unit, Place(outside)).payload is not None
    workshop.edit("learners", "2 * x", "5 * x")  # the checkout that the worker has is another one
    refused = execute(unit, Place(outside))
    assert refused.payload is None
    assert refused.error.startswith("OtherCode: the code of this arm")
    other = next(unit for unit in plan.units if unit.arm == "plain")
    assert execute(other, Place(outside)).payload is not None
    assert execute(replace(other, code="of another day"), Place(outside)).payload is None


def test_code_that_is_edited_while_a_run_goes_on_stores_nothing_wrong(workshop):
    def edit(event: lab.Event) -> None:
        if isinstance(event, lab.UnitDone) and event.unit.arm == "helped":
            workshop.edit("learners", "return total(x)", "return total(x) + 7")

    run = lab.run("reuse", on_event=edit, **workshop.where)
    (failure,) = run.manifest.failures
    assert failure.unit.startswith("library")
    assert "OtherCode" in failure.error
    assert workshop.run() == {"library": 1}
    total = workshop.last.results.final("value", arm="library") - workshop.last.results.final("value", arm="plain")
    assert np.allclose(total.array, 7)


def test_installed_packages_count_by_version(workshop, monkeypatch):
    workshop.run()
    monkeypatch.setattr("assay.lab.code_version._version_of", lambda package: "99.0")
    discovery._LOADED.clear()  # a package that was exchanged is seen by the next process
    forecast = lab.plan("reuse", **workshop.where)
    assert forecast.compute == 5  # every arm is handed its seeds' streams, which are torch's
    assert "torch 99.0 (stored: 2" in forecast.reasons["plain"]


def test_the_forecast_tells_counts_reasons_and_time(workshop):
    fresh = lab.plan("reuse", **workshop.where)
    assert (fresh.compute, fresh.reuse, fresh.seconds) == (5, 0, None)
    assert set(fresh.reasons.values()) == {"nothing is stored yet"}
    assert not workshop.where["runs"].exists()
    workshop.run()
    workshop.edit("learners", "2 * x", "3 * x")
    ahead = lab.plan("reuse", **workshop.where)
    assert (ahead.compute, ahead.reuse) == (1, 4)
    assert ahead.seconds >= 0
    assert ahead.rows()[0] == {"arm": "helped", "compute": 1, "reuse": 0, "reason": "`learners.py` changed since"}
    assert "4 stored" in repr(ahead)
    assert "<table>" in ahead._repr_html_()


def test_time_is_taken_from_the_units_whose_parameters_are_nearest(workshop):
    for scale, seconds in ((1.0, 3.0), (5.0, 300.0)):
        run = lab.run("reuse", set={"scale": scale}, arms="helped", seeds=3, jobs=1, **workshop.where)
        for unit in run.manifest.units:
            folder = run.store.units / unit.key
            files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != SUMS}
            files["unit.json"] = json.dumps({**json.loads(files["unit.json"]), "seconds": seconds}).encode()
            (folder / "unit.json").write_bytes(files["unit.json"])
            (folder / SUMS).write_bytes(sums(files))
    for scale, expected in ((1.0, 2.0), (5.0, 200.0)):
        ahead = lab.plan("reuse", set={"scale": scale}, arms="helped", seeds=5, **workshop.where)
        assert ahead.seconds == pytest.approx(expected)


def test_an_override_that_no_chosen_arm_reads_is_refused(workshop):
    with pytest.raises(UserError, match=r"--set scale=2 changes nothing .* the arms that read it are helped"):
        workshop.run(set={"scale": 2}, arms="plain")
    assert workshop.run(set={"scale": 1.0}, arms="plain") == {"plain": 1}  # it is what it was


@pytest.mark.parametrize(("before", "after"), [(2**20, 2**22), (2**22, 2**20)])
def test_another_working_set_loses_no_seed(bench, monkeypatch, before, after):
    """The size of chunks is no part of an address: what is stored in large ones answers several small ones."""
    arm = bench.study("choosy").arms["heavy"]

    def run(working_set):
        monkeypatch.setitem(bench.study("choosy").arms, "heavy", replace(arm, working_set=lambda params: working_set))
        return bench.run("choosy", arms="heavy", seeds=8)

    first, second = run(before), run(after)
    assert (second.computed, second.reused) == (0, len(second.manifest.units))
    assert sorted(seed for unit in second.manifest.units for seed in unit.seeds) == list(range(8))
    tables = [bench.frame("choosy", result.manifest).sort("seed") for result in (first, second)]
    assert tables[0].equals(tables[1])
