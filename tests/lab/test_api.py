"""The Python side: runs as objects, and a lab that leaves no trace in the process that calls it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import altair as alt
import polars as pl
import pytest
import torch

from assay import lab
from assay.lab import UserError

OUTSIDE = Path(__file__).parent / "outside"
FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def where(tmp_path):
    return dict(runs=tmp_path / "runs", studies=OUTSIDE)


@pytest.fixture
def coin(where):
    return lab.run("coin", preset="smoke", **where)


def test_a_run_has_its_table_verdicts_figures_and_tables(coin):
    assert isinstance(coin.measurements, pl.DataFrame)
    assert {"arm", "seed", "step", "metric", "value", "setting"} <= set(coin.measurements.columns)
    assert coin.claims["C1"].judgement.verdict == "holds"
    assert [finding.claim.id for finding in coin.claims] == ["C1", "N1"]
    assert coin.claims[0] is coin.claims["C1"]
    assert coin.claims.counts == {"holds": 2}
    assert isinstance(coin.figure("share"), alt.TopLevelMixin)
    assert coin.results.final("share", arm="tossed", setting="many").array.shape == (4,)
    with pytest.raises(UserError, match=r"unknown figure 'shares'.*did you mean 'share'"):
        coin.figure("shares")
    with pytest.raises(KeyError, match="no claim C9"):
        coin.claims["C9"]


def test_objects_can_be_read(coin):
    assert "coin, preset smoke" in repr(coin)
    assert "holds" not in repr(coin)  # looking at it judges nothing
    assert coin.claims.counts == {"holds": 2}
    assert "2 holds" in repr(coin)
    assert "C1" in repr(coin.claims)
    for html in (coin._repr_html_(), coin.claims._repr_html_()):
        assert "<table>" in html
        assert "holds" in html


def test_runs_are_opened_named_listed_and_compared(coin, where):
    other = lab.run("coin", preset="smoke", set={"bias": 0.9}, name="biased", **where)
    assert [run.id for run in lab.runs("coin", **where)] == [coin.id, other.id]
    assert lab.open_run("coin", **where).id == coin.id  # the newest complete run of the preset as it is
    assert lab.open_run("coin", "biased", **where).id == other.id
    assert lab.open_run("biased", **where).id == other.id
    assert lab.find_run(other.id[:22], **where).id in (coin.id, other.id)
    assert lab.claims("coin", **where).rows() == coin.claims.rows()
    found = lab.compare(coin, "biased", **where)
    assert found.parameters == {"bias": (0.6, 0.9)}
    assert [change.id for change in found.claims] == ["C1", "N1"]
    assert {change.id for change in (*found.turned, *found.moved)} == {"C1", "N1"}
    assert "1 parameters differ" in repr(found)
    assert found.code == {}
    same = lab.compare(coin, coin)
    assert (same.turned, same.moved, same.parameters) == ([], [], {})
    with pytest.raises(UserError, match="unknown run 'worst'"):
        lab.find_run("worst", **where)


def test_one_point_is_tried_and_stored_nowhere(where):
    tried = lab.try_arm("coin", "tossed", setting="few", seeds=5, studies=where["studies"])
    assert len(tried.final("share").array) == 5
    assert tried.frame["setting"].unique().to_list() == ["few"]
    first = lab.try_arm("coin", "tossed", studies=where["studies"])
    assert first.frame["setting"].unique().to_list() == ["few"]
    assert not where["runs"].exists()
    run = lab.run("coin", preset="smoke", seeds=3, **where)
    stored = run.results.final("share", arm="tossed", setting="many").array
    again = lab.try_arm("coin", "tossed", setting="many", seeds=3, studies=where["studies"]).final("share").array
    assert stored.tolist() == again.tolist()
    with pytest.raises(UserError, match="unknown arm 'thrown'"):
        lab.try_arm("coin", "thrown", studies=where["studies"])
    with pytest.raises(UserError, match="unknown value of 'setting' 'lots'"):
        lab.try_arm("coin", "tossed", setting="lots", studies=where["studies"])


def test_a_point_of_the_grid_alone(where):
    run = lab.run("coin", preset="smoke", point={"setting": "few"}, **where)
    assert run.measurements["setting"].unique().to_list() == ["few"]
    assert not run.manifest.whole
    # The claim about the other point is not run, and no mistake of its author.
    assert run.claims["C1"].judgement.verdict == "not run"
    assert run.claims.broken == []


def test_the_report_of_a_run(coin, tmp_path, where):
    index = lab.report(coin, out=tmp_path / "site")
    assert (tmp_path / "site" / "coin.html").exists()
    assert index == tmp_path / "site" / "index.html"
    assert lab.report("coin", out=tmp_path / "other", **where).exists()
    assert coin.report(tmp_path / "third").exists()


def test_events_tell_how_a_run_goes(where):
    heard: list[lab.Event] = []
    lab.run("coin", preset="smoke", on_event=heard.append, **where)
    assert isinstance(heard[0], lab.Started)
    assert (heard[0].total, heard[0].stored) == (2, 0)
    assert isinstance(heard[-1], lab.Finished)
    assert heard[-1].status == "complete"
    assert sum(isinstance(event, lab.UnitDone) for event in heard) == 2
    assert any(isinstance(event, lab.Measured) and event.metric == "share" for event in heard)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_leaves_no_trace_in_the_process(tmp_path, jobs):
    import sklearn  # noqa: F401 (sets a variable of its own on import)
    import threadpoolctl

    before_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    random = torch.get_rng_state()
    folder, environment, threads = os.getcwd(), dict(os.environ), threading.active_count()
    pools = [(pool["user_api"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()]
    import joblib.externals.loky.process_executor as executor

    leak = executor._MAX_MEMORY_LEAK_SIZE
    try:
        lab.run("coin", preset="smoke", jobs=jobs, runs=tmp_path, studies=OUTSIDE)
        lab.try_arm("coin", "tossed", studies=OUTSIDE)
        assert torch.get_num_threads() == 2
        assert [(pool["user_api"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()] == pools
        assert torch.equal(torch.get_rng_state(), random)
        assert os.getcwd() == folder
        assert {k: v for k, v in os.environ.items() if environment.get(k) != v} == {}
        assert leak == executor._MAX_MEMORY_LEAK_SIZE
        assert threading.active_count() <= threads + (0 if jobs == 1 else 4)  # joblib keeps workers for a while
    finally:
        torch.set_num_threads(before_threads)


def test_a_failed_unit_is_told_by_the_run(tmp_path):
    run = lab.run("faulty", preset="smoke", runs=tmp_path, studies=FIXTURES)
    assert run.manifest.status == "failed"
    (failure,) = run.manifest.failures
    assert "ZeroDivisionError: the second condition is broken" in failure.error
    assert "study.py, line" in failure.error
    assert run.missing == 1
    assert lab.open_run("faulty", runs=tmp_path, studies=FIXTURES).manifest.status == "failed"


def test_verdicts_are_read_back_while_nothing_changed(coin, where, monkeypatch):
    assert coin.claims.counts == {"holds": 2}
    from assay.lab.study import Study

    monkeypatch.setattr(Study, "judge", lambda *arguments, **options: pytest.fail("judged again"))
    again = lab.open_run("coin", **where)
    assert again.claims.rows() == coin.claims.rows()
    assert again.code_changed == []


def test_verdicts_are_judged_anew_when_a_unit_changed(coin, where):
    assert coin.claims.counts == {"holds": 2}
    unit = next(unit for unit in coin.manifest.units if unit.point == {"setting": "many"})
    stored = coin.store.read(unit.key)
    from assay.lab.store import Payload

    moved = stored.frame.with_columns(value=pl.lit(0.0))
    coin.store.write(unit.key, Payload.pack(moved, {}, stored.meta))
    assert lab.claims("coin", **where)["C1"].judgement.verdict == "fails"


def test_bad_input_is_refused_before_anything_is_written(where):
    for request, words in (
        ({"preset": "big"}, "unknown preset 'big'"),
        ({"jobs": 0}, "--jobs 0 is not allowed"),
        ({"first_seed": -1}, "--first-seed -1 is not allowed"),
        ({"seeds": 0}, "--seeds 0 is not allowed"),
        ({"address": "tcp://x"}, "--address names a cluster"),
        ({"set": {"nosuch": 1}}, "unknown parameter 'nosuch'"),
        ({"point": {"setting": "lots"}}, "unknown value of 'setting' 'lots'"),
        ({"point": {"k": "1"}}, "unknown column of the chosen arms' grids 'k'"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"name": "a b"}, "cannot be called 'a b'"),
    ):
        with pytest.raises(UserError, match=words):
            lab.run("coin", **{"preset": "smoke", **request}, **where)
        assert not list(where["runs"].rglob("*.json"))


def test_studies_may_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_STUDIES", os.pathsep.join([str(OUTSIDE), str(FIXTURES)]))
    monkeypatch.setenv("ASSAY_RUNS", str(tmp_path / "there"))
    assert lab.run("coin", preset="smoke").store.runs == tmp_path / "there"
    assert lab.plan("choosy", preset="smoke").compute > 0
    monkeypatch.setenv("ASSAY_STUDIES", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="nowhere does not exist"):
        lab.run("coin", preset="smoke")


def test_every_public_name_resolves():
    assert [name for name in lab.__all__ if getattr(lab, name, None) is None] == []
    assert set(lab.__all__) <= set(dir(lab))
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = lab.nosuch


def test_a_smoke_run_does_not_hide_a_larger_one(where):
    laptop = lab.run("coin", preset="laptop", **where)
    smoke = lab.run("coin", preset="smoke", **where)
    assert lab.open_run("coin", **where).id == laptop.id
    assert lab.open_run("coin", preset="smoke", **where).id == smoke.id


def test_an_older_manifest_that_is_damaged_stands_in_its_own_way_alone(where):
    first = lab.run("coin", preset="smoke", seeds=2, **where)
    second = lab.run("coin", preset="smoke", seeds=2, **where)
    (first.store.manifests / f"{first.id}.json").write_text("{")
    assert lab.open_run("coin", **where).id == second.id
    assert [run.id for run in lab.runs("coin", **where)] == [second.id]


def test_names_are_given_once(where):
    run = lab.run("coin", preset="smoke", name="best", **where)
    with pytest.raises(UserError, match="is already called 'best'"):
        lab.run("coin", preset="smoke", name="best", **where)
    other = lab.run("coin", preset="smoke", **where)
    with pytest.raises(UserError, match="is already called 'best'"):
        lab.rename_run(other.id, "best", runs=where["runs"])
    assert lab.rename_run("best", "", runs=where["runs"]).manifest.name == ""
    assert lab.rename_run(other.id, "best", runs=where["runs"]).id == other.id
    assert lab.remove_run("best", runs=where["runs"]) > 0
    assert [each.id for each in lab.runs(**where)] == [run.id]


def test_words_and_numbers_of_a_request_are_checked(where):
    for request, words in (
        ({"arms": ""}, "names no arm"),
        ({"arms": []}, "names no arm"),
        ({"set": "bias=0.9"}, "takes a mapping"),
        ({"seeds": "3"}, "seeds takes a whole number"),
    ):
        with pytest.raises(UserError, match=words):
            lab.run("coin", preset="smoke", **request, **where)
    import numpy as np

    assert lab.run("coin", preset="smoke", set={"tosses": np.int64(50)}, **where).results.params.tosses == 50


def test_a_studys_object_is_run_where_it_lies(where, tmp_path):
    from assay.lab import discovery

    study = discovery.find("coin", str(OUTSIDE))
    run = lab.run(study, preset="smoke", runs=tmp_path / "other")
    assert run.claims.counts == {"holds": 2}
    made = lab.Study("made", title="t", question="q?", source="s", params=lab.Params, presets=study.presets)
    with pytest.raises(UserError, match="was made in this process"):
        lab.run(made, preset="smoke", runs=tmp_path / "other")


def test_two_runs_at_once_in_one_process_have_one_thread_each():
    from assay.lab.backends import one_thread

    torch.set_num_threads(2)
    seen, first_in, second_done = [], threading.Event(), threading.Event()

    def first():
        with one_thread():
            first_in.set()
            second_done.wait(10)
            seen.append(torch.get_num_threads())

    thread = threading.Thread(target=first)
    thread.start()
    first_in.wait(10)
    with one_thread():
        seen.append(torch.get_num_threads())
    second_done.set()
    thread.join()
    assert seen == [1, 1]
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


def test_an_edited_preset_is_noticed(tmp_path):
    import shutil

    shutil.copytree(OUTSIDE, tmp_path / "studies")
    where = dict(runs=tmp_path / "runs", studies=tmp_path / "studies")
    run = lab.run("coin", preset="laptop", **where)
    assert not lab.open_run("coin", **where).parameters_changed
    study = tmp_path / "studies" / "coin" / "study.py"
    study.write_text(study.read_text().replace("Field(1000, ge=10", "Field(2000, ge=10"))
    opened = lab.open_run("coin", **where)
    assert (opened.id, opened.parameters_changed, opened.code_changed) == (run.id, True, [])
    from assay.lab import results

    with pytest.raises(UserError, match="parameters have changed since"):
        results.check_quotable(opened.store, opened.study, opened.manifest)
