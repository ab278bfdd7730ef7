"""An author's slips: each gets one sentence, when the study is loaded or at the latest when a run is planned."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

from assay.lab import Preset, Study, UserError, discovery
from assay.lab.planning import make_plan
from assay.lab.units import Request


@pytest.fixture
def changed(coin_copy, outside_folder):
    """The coin study with a piece of its code replaced, loaded."""

    def load(old: str, new: str, room: str = "study") -> Study:
        code = (outside_folder / "coin" / f"{room}.py").read_text()
        assert old in code
        return discovery.find("coin", str(coin_copy(**{room: code.replace(old, new)})))

    return load


def refused(load, *arguments, **options) -> str:
    with pytest.raises(UserError) as caught:
        load(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


PRESET = 'lab.Preset(seeds=8, cost="1 s")'


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ('cost="quick"', "cost 'quick' does not start with a number and s, min or h"),
        ('cost="1.2.3 s"', "cost '1.2.3 s' does not start with a number"),
        ('cost="1 s", fewer={"tosed": 4}', "fewer= of the preset 'laptop': unknown name 'tosed'"),
        ('cost="1 s", fewer={"tossed": 0}', "leaves 'tossed' without any seed"),
        ('cost="1 s", skip=("tosed",)', "skip= of the preset 'laptop': unknown name 'tosed'"),
        ('cost="1 s", arms=("tosed",)', "arms= of the preset 'laptop': unknown name 'tosed'"),
        ('cost="1 s", settings={"fex": {}}', "settings= of the preset 'laptop': unknown name 'fex'"),
        ('cost="1 s", settings={"few": {"toses": 3}}', "for 'few': unknown name 'toses'"),
        ('cost="1 s", toses=3', "the preset 'laptop': unknown name 'toses'"),
    ],
)
def test_a_preset_that_names_what_does_not_exist(changed, options, says):
    sentence = refused(changed, PRESET, f"lab.Preset(seeds=8, {options})")
    assert says in sentence
    if "unknown name" in says:
        assert "did you mean" in sentence
        assert "study 'coin'" in sentence


def test_a_setting_that_names_what_does_not_exist(changed):
    assert "the setting 'few': unknown name 'toses'" in refused(changed, '{"tosses": 20}', '{"toses": 20}')


def test_a_claim_about_a_setting_that_does_not_exist(changed):
    sentence = refused(changed, 'source="control"', 'source="control", setting="fex"', room="claims")
    assert "claim N1: unknown name 'fex'" in sentence


@pytest.mark.parametrize(
    ("needs", "says"),
    [
        ('("foo",)', "unknown requirement 'foo'"),
        ('"foo"', "unknown requirement 'foo'"),
        ('("extra:luck",)', "unknown extra 'luck'"),
        ("lambda p: [f'coins:{p.tosses}']", "unknown requirement 'coins:"),
    ],
)
def test_a_need_of_no_known_kind(changed, needs, says):
    sentence = refused(changed, '@study.arm("tossed"', f'@study.arm("tossed", needs={needs}')
    assert "study 'coin', arm 'tossed': " in sentence
    assert says in sentence


@pytest.mark.parametrize("needs", ['("gpu", "extra:llm", "data:faces", "model:any")', "lambda p: ['data:mine']"])
def test_a_need_that_is_not_met_is_no_error(changed, needs):
    assert list(changed('@study.arm("tossed"', f'@study.arm("tossed", needs={needs}').arms) == ["tossed"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("where,value\nTable 1,2,3,4\n", "cannot read"),
        ("", "cannot read"),
        ("where,number\nTable 1,2\n", "it needs a column 'value'"),
        ("where,value\nTable 1,many\n", "it needs a column 'value' with a number"),
    ],
)
def test_a_malformed_paper_csv(coin_copy, text, says):
    folder = coin_copy()
    (folder / "coin" / "paper.csv").write_text(text)
    sentence = refused(discovery.find, "coin", str(folder))
    assert says in sentence
    assert "paper.csv" in sentence


def test_a_study_without_printed_numbers_needs_no_file(outside_folder):
    assert discovery.find("coin", str(outside_folder)).paper.is_empty()


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ("4 * p.width**2", "'Params' object has no attribute 'width' (it is a function of the parameters in uses="),
        ("p.bias", "'bias' without naming it in uses="),
        ("0", "is 0 bytes, and must be a positive number"),
        ("-1.5", "is -1.5 bytes"),
        ("float('nan')", "is nan bytes"),
        ("float('inf')", "is inf bytes"),
        ("None", "cannot be computed: TypeError"),
        ("1 / 0", "cannot be computed: ZeroDivisionError"),
    ],
)
def test_a_working_set_that_cannot_be(changed, size, says):
    study = changed('@study.arm("tossed"', f'@study.arm("tossed", uses=("tosses",), working_set=lambda p: {size}')
    sentence = refused(make_plan, study, Request("smoke"))
    assert "the working set of arm 'tossed' " in sentence
    assert says in sentence


@pytest.mark.parametrize(
    ("over", "shown"),
    [
        ('{"k": [1, "all"]}', "(1, 'all')"),
        ('{"k": lambda p: [1, "all"]}', "(1, 'all')"),
        ('[{"k": 1}, {"k": "all", "n": 2}]', "(1, 'all')"),
        ('{"k": [True, 1]}', "(True, 1)"),
    ],
)
def test_an_axis_of_several_types(changed, over, shown):
    code = '@study.arm("tossed", over={"setting": ["few", "many"]})\ndef tossed(params, seeds, record, *, setting):'
    study = changed(code, f'@study.arm("tossed", over={over})\ndef tossed(params, seeds, record, *, k, n=0):')
    assert refused(make_plan, study, Request("smoke")) == (
        f"arm 'tossed' spans 'k' with values of different types {shown}"
    )


@pytest.mark.parametrize("values", [[1, 2.5], ["a", "b"], [None, 1], [None, "a"], [True, False], []])
def test_an_axis_of_one_type(outside_folder, values):
    study = discovery.find("coin", str(outside_folder))
    arm = dataclasses.replace(study.arms["tossed"], over={"k": values})
    assert arm.points(study.resolve("smoke", {})) == [{"k": value} for value in values]


@pytest.mark.parametrize(("returned", "says"), [("None", "returned nothing"), ("True", "returned a bool")])
def test_a_claim_that_returns_no_judgement_is_broken(changed, returned, says, tmp_path, make_bench):
    study = changed("return m.final", f"return {returned}\n    return m.final", room="claims")
    bench = make_bench(tmp_path / "runs", study.folder.parent)
    result = bench.run("coin")
    found = study.judge(bench.load("coin", result.manifest))
    assert [finding.judgement.verdict for finding in found] == ["holds", "not run"]
    error = found[1].judgement.error
    assert says in error
    assert "claims.py, line 9)" in error
    assert (found[1].row()["verdict"], found[1].row()["error"]) == ("not run", error)


def test_a_data_set_that_nobody_knows_is_refused_where_an_override_names_it(changed, monkeypatch, tmp_path):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    study = changed(
        'tosses: int = Field(1000, ge=10, description="tosses per seed")',
        'tosses: int = Field(1000, ge=10, description="tosses per seed")\n    images: str = "mine"',
    )
    arm = dataclasses.replace(study.arms["tossed"], needs=lambda p: (f"data:{p.images}",))
    monkeypatch.setitem(study.arms, "tossed", arm)
    # The study's own is left out with a reason, and so is a known one that is not here.
    for overrides in ({}, {"tosses": "20"}, {"images": "tiny_imagenet"}):
        monkeypatch.setattr("assay.data.catalog.find_spec", lambda name: None)
        assert list(make_plan(study, Request("smoke", overrides)).skipped) == ["tossed"]
    for overrides in ({"images": "mnsit"}, {"few.images": "mnsit"}):
        sentence = refused(make_plan, study, Request("smoke", overrides))
        assert "unknown data set 'mnsit'" in sentence
        assert "did you mean 'mnist'" in sentence
    # A folder of one's own makes any name known.
    (tmp_path / "mnsit").mkdir()
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    monkeypatch.setattr("assay.data.catalog.find_spec", lambda name: object())
    assert "is not on this machine" in make_plan(study, Request("smoke", {"images": "mnsit"})).skipped["tossed"]
    for split in ("train", "test"):
        pl.DataFrame({"image": [b""], "label": [0]}).write_parquet(tmp_path / "mnsit" / f"{split}-0.parquet")
    assert make_plan(study, Request("smoke", {"images": "mnsit"})).skipped == {}


def test_a_data_set_of_another_kind_is_refused_where_an_override_names_it(changed, monkeypatch):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    field = 'tosses: int = Field(1000, ge=10, description="tosses per seed")'
    study = changed(field, f'{field}\n    images: str = "digits"')
    arm = dataclasses.replace(study.arms["tossed"], needs=lambda p: (f"data:{p.images}",))
    monkeypatch.setitem(study.arms, "tossed", arm)
    sentence = refused(make_plan, study, Request("smoke", {"images": "sst2"}))
    assert sentence.startswith("'sst2' is no image set but a text set (allowed: digits, mnist,")
    assert "sst2" not in sentence.partition("allowed")[2]
    assert "unknown image set 'mnsit'" in refused(make_plan, study, Request("smoke", {"images": "mnsit"}))


def test_a_known_data_set_that_is_not_here_is_refused_where_its_arm_is_named(changed, monkeypatch):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setattr("assay.data.catalog.find_spec", lambda name: None if name == "datasets" else object())
    field = 'tosses: int = Field(1000, ge=10, description="tosses per seed")'
    study = changed(field, f'{field}\n    images: str = "digits"')
    arm = dataclasses.replace(study.arms["tossed"], needs=lambda p: (f"data:{p.images}",))
    monkeypatch.setitem(study.arms, "tossed", arm)
    sentence = refused(make_plan, study, Request("smoke", {"images": "mnist"}, arms="tossed"))
    assert "the image set 'mnist' is not on this machine: ASSAY_DATA names no data folder" in sentence
    assert "unknown" not in sentence


def test_a_cost_is_checked_where_it_is_stated():
    with pytest.raises(ValueError, match="cost 'quick'"):
        Preset(seeds=1, cost="quick")
