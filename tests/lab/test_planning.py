"""Units and their keys: what determines a result, and nothing else, determines its address."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.lab import UserError, discovery
from assay.lab.chunks import MAX_CHUNK, chunk_size, chunks
from assay.lab.execute import Place, execute
from assay.lab.planning import make_plan
from assay.lab.requirements import missing_requirement
from assay.lab.units import Request


def keys(plan, arm=None):
    return [unit.key for unit in plan.units if arm in (None, unit.arm)]


def seeds_of(plan, arm, **point):
    return [unit.seeds for unit in plan.units if unit.arm == arm and dict(unit.point) == point]


@given(st.integers(0, 200), st.integers(1, 300), st.integers(1, 300), st.integers(1, 80))
def test_chunks_have_fixed_boundaries(first, count, more, size):
    small, large = (chunks(range(first, first + n), size) for n in (count, count + more))
    assert [seed for chunk in small for seed in chunk] == list(range(first, first + count))
    assert all(chunk[0] // size == chunk[-1] // size for chunk in small)
    assert all(chunk[0] % size == 0 for chunk in small[1:])
    # More seeds add chunks and change none but the last.
    assert large[: len(small) - 1] == small[:-1]


def test_chunks_end_where_seeds_are_missing():
    assert chunks([0, 1, 4, 5, 6, 9], 6) == [(0, 1), (4, 5), (6,), (9,)]


@pytest.mark.parametrize(
    ("working_set", "device", "size"),
    [
        (None, "cpu", MAX_CHUNK),
        (1, "cpu", MAX_CHUNK),
        (2**21, "cpu", 4),
        (2**23, "cpu", 1),
        (2**40, "cpu", 1),
        (2**20, "cuda", MAX_CHUNK),
        (2**30, "cuda", 8),
    ],
)
def test_the_chunk_follows_from_the_working_set_and_the_kind_of_device(working_set, device, size):
    assert chunk_size(working_set, device) == size


@pytest.mark.parametrize("working_set", [0, -1.0])
def test_an_impossible_working_set_is_refused(working_set):
    with pytest.raises(ValueError, match="not possible"):
        chunk_size(working_set, "cpu")


def test_a_plan_lists_arm_by_setting_by_chunk(bench):
    plan = bench.plan("choosy", seeds=6)
    assert seeds_of(plan, "linear", setting="plain") == [(0, 1, 2, 3, 4, 5)]
    assert seeds_of(plan, "linear", setting="wide") == [(0, 1, 2, 3, 4, 5)]
    assert seeds_of(plan, "heavy") == [(0, 1, 2, 3), (4, 5)]
    assert len({unit.key for unit in plan.units}) == len(plan.units)
    assert plan.units[0].label == "linear setting=plain seeds 0–5"


def test_more_seeds_keep_the_address_and_the_full_chunks(bench):
    few, many = (bench.plan("choosy", seeds=n) for n in (6, 9))
    assert {unit.address for unit in few.units} == {unit.address for unit in many.units}
    assert keys(few, "heavy")[0] == keys(many, "heavy")[0]
    assert len(keys(many, "heavy")) == 3


def test_keys_do_not_depend_on_the_preset_but_on_what_it_sets(bench):
    smoke = bench.plan("choosy", preset="smoke", seeds=3)
    laptop = bench.plan("choosy", preset="laptop", seeds=3, overrides={"dim": "4"})
    assert keys(smoke, "double") == keys(laptop, "double")
    assert keys(smoke, "double") != keys(bench.plan("choosy", preset="laptop", seeds=3), "double")


def test_keys_change_with_used_parameters_only(bench):
    plain = bench.plan("choosy")
    for overrides, changed in (
        ({"dim": "5"}, {"linear", "double", "heavy"}),
        ({"width": "9"}, {"double"}),
        ({"rate": "0.2"}, set()),
        ({"wide.dim": "5"}, {"linear"}),
    ):
        other = bench.plan("choosy", overrides=overrides)
        assert {arm for arm in ("linear", "double", "heavy") if keys(other, arm) != keys(plain, arm)} == changed
    # Equal values in another spelling are the same parameters.
    assert keys(bench.plan("choosy", overrides={"rate": "0.10", "dim": "04"})) == keys(plain)


def test_keys_change_with_seeds_device_and_dtype(bench):
    plain = bench.plan("choosy")
    assert set(keys(plain)).isdisjoint(keys(bench.plan("choosy", seeds=2)))
    assert set(keys(plain)).isdisjoint(keys(bench.plan("choosy", device="cuda")))
    study = bench.study("choosy")
    arm = study.arms["linear"]
    try:
        study.arms["linear"] = dataclasses.replace(arm, dtype="float64")
        assert set(keys(plain, "linear")).isdisjoint(keys(bench.plan("choosy"), "linear"))
    finally:
        study.arms["linear"] = arm


def test_keys_follow_the_code_and_not_the_claims(coin_copy, outside_folder):
    code = (outside_folder / "coin" / "study.py").read_text()
    claims = (outside_folder / "coin" / "claims.py").read_text().replace("near the bias", "close to the bias")

    def keys_in(folder):
        return keys(make_plan(discovery.find("coin", str(folder)), Request("smoke")))

    original = keys_in(outside_folder)
    assert keys_in(coin_copy(claims=claims)) == original
    assert keys_in(coin_copy(figures="")) == original
    assert set(keys_in(coin_copy(study=code.replace("< params.bias", "<= params.bias")))).isdisjoint(original)


def test_a_preset_may_give_fewer_seeds_to_a_setting_or_an_arm(bench):
    plan = bench.plan("choosy", preset="laptop")
    assert seeds_of(plan, "linear", setting="plain") == [tuple(range(8))]
    assert seeds_of(plan, "linear", setting="wide") == [tuple(range(4))]
    assert seeds_of(plan, "double") == [(0, 1)]
    asked = bench.plan("choosy", preset="laptop", seeds=5)  # --seeds N means seeds 0..N-1 everywhere
    assert seeds_of(asked, "double") == [tuple(range(5))]


def test_which_arms_run(bench):
    def arms(**request):
        plan = bench.plan("choosy", **request)
        return {unit.arm for unit in plan.units}

    assert arms() == {"linear", "double", "heavy"}
    assert arms(arms="double") == {"double"}
    assert arms(arms="double, extra") == {"double", "extra"}
    assert arms(arms="+extra") == {"linear", "double", "heavy", "extra"}
    assert arms(preset="paper", seeds=1) == {"linear", "heavy", "extra"}
    assert arms(preset="paper", seeds=1, arms="+double") == {"linear", "double", "heavy", "extra"}


def test_a_missing_need_skips_an_arm_or_is_an_error_when_it_was_asked_for(bench):
    study = bench.study("choosy")
    arm = study.arms["needy"]
    try:
        study.arms["needy"] = dataclasses.replace(arm, optional=False)
        assert bench.plan("choosy").skipped == {"needy": "it needs a GPU (--device cuda)"}
    finally:
        study.arms["needy"] = arm
    assert bench.plan("choosy").skipped == {}
    for asked in ("needy", "+needy", "double,needy"):
        with pytest.raises(UserError, match="arm 'needy' cannot run: it needs a GPU"):
            bench.plan("choosy", arms=asked)
    assert "needy" in {unit.arm for unit in bench.plan("choosy", arms="+needy", device="cuda").units}


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (("extra:nothing-of-the-kind",), "it needs the extra"),
        (lambda params: [f"data:set_{params.dim}"], "it needs the data set 'set_4'"),
    ],
)
def test_extras_and_data_are_needs_too(bench, monkeypatch, needs, reason):
    monkeypatch.setattr("assay.lab.requirements._EXTRAS", {"nothing-of-the-kind": ("no_such_module_here",)})
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    study = bench.study("choosy")
    monkeypatch.setitem(study.arms, "needy", dataclasses.replace(study.arms["needy"], optional=False, needs=needs))
    assert bench.plan("choosy").skipped["needy"].startswith(reason)


def test_a_need_may_be_a_plain_string(bench, monkeypatch):
    study = bench.study("choosy")
    monkeypatch.setitem(study.arms, "needy", dataclasses.replace(study.arms["needy"], optional=False, needs="gpu"))
    assert bench.plan("choosy").skipped == {"needy": "it needs a GPU (--device cuda)"}
    with pytest.raises(ValueError, match=r"unknown extra 'luck' .*allowed: llm, data, cluster, web"):
        missing_requirement("extra:luck", "cpu")


def test_data_that_the_hub_could_serve_is_no_missing_need(monkeypatch):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setattr("assay.data.catalog.find_spec", lambda name: object())
    assert missing_requirement(("data:mnist",), "cpu") is None
    assert "unknown data set 'faces'" in missing_requirement(("data:faces",), "cpu")
    monkeypatch.setattr("assay.data.catalog.find_spec", lambda name: None)
    assert "assay-lab[data]" in missing_requirement(("data:mnist",), "cpu")


def test_a_point_named_twice_is_one_unit(bench, monkeypatch):
    study = bench.study("choosy")
    twice = dataclasses.replace(study.arms["linear"], over={"setting": ["plain", "wide", "plain"]})
    units = bench.plan("choosy").units
    monkeypatch.setitem(study.arms, "linear", twice)
    assert bench.plan("choosy").units == units


def test_an_unknown_need_is_the_authors_mistake(bench, monkeypatch):
    study = bench.study("choosy")
    broken = dataclasses.replace(study.arms["needy"], optional=False, needs=("luck",))
    monkeypatch.setitem(study.arms, "needy", broken)
    with pytest.raises(ValueError, match="unknown requirement 'luck'"):
        bench.plan("choosy")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"seeds": 0}, "--seeds 0 is not allowed: a run needs at least one seed"),
        ({"seeds": -2}, "--seeds -2 is not allowed"),
        ({"arms": "lineer"}, "unknown arm 'lineer'.*did you mean 'linear'"),
        ({"arms": "+nosuch"}, "unknown arm 'nosuch'"),
        ({"preset": "big"}, "unknown preset 'big'"),
        ({"overrides": {"dim": "-3"}}, "dim = '-3' is not allowed"),
        ({"overrides": {"nosuch": "1"}}, "unknown parameter 'nosuch'"),
        ({"overrides": {"wide.width": "0"}}, "width = '0' is not allowed"),
        ({"overrides": {"narrow.width": "1"}}, "unknown setting 'narrow'"),
    ],
)
def test_bad_requests_are_refused(bench, request_, message):
    with pytest.raises(UserError, match=message):
        bench.plan("choosy", **request_)


def test_an_arm_that_reads_an_undeclared_parameter_fails(bench):
    (unit,) = bench.plan("choosy", arms="prying").units
    outcome = execute(unit, Place(bench.outside))
    assert outcome.payload is None
    assert "'rate' without naming it in uses=" in outcome.error
    assert "study.py" in outcome.trace
