"""The queries that claims and figures ask of the tidy table."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from assay.lab import AmbiguousQuery, Measurements, NotMeasured, Params, Values


class Nothing(Params):
    dim: int = 3


def measurements(rows, **options) -> Measurements:
    """rows: (arm, setting, seed, step, metric, value)."""
    columns = ["arm", "setting", "seed", "step", "metric", "value"]
    schema = {"seed": pl.Int64, "step": pl.Int64, "value": pl.Float64}
    frame = pl.DataFrame(rows, schema=columns, schema_overrides=schema, orient="row")
    return Measurements(frame, Nothing(), **options)


@pytest.fixture
def m():
    """Seeds 0 to 2: the network climbs by 0.1 (seed + 1) a step to step 3, the kernel by 0.1 to step 2."""
    rows = [
        (arm, setting, seed, step, "accuracy", height)
        for seed in range(3)
        for arm, setting, last, slope in (("network", "parity", 3, 0.1 * (seed + 1)), ("kernel", "parity", 2, 0.1))
        for step in range(last + 1)
        for height in [slope * step]
    ]
    rows += [("network", "interval", seed, None, "rank", 7.0 + seed) for seed in range(2)]
    return measurements(rows)


def test_final_takes_the_last_step_of_each_seed(m):
    final = m.final("accuracy", arm="network")
    assert final.by_seed == pytest.approx({0: 0.3, 1: 0.6, 2: 0.9})
    assert final.what == "accuracy of network"
    assert m.final("rank").by_seed == {0: 7, 1: 8}


def test_final_of_seeds_that_stopped_at_different_steps():
    m = measurements([("a", "s", 0, 5, "loss", 1.0), ("a", "s", 0, 9, "loss", 2.0), ("a", "s", 1, 5, "loss", 3.0)])
    assert m.final("loss").by_seed == {0: 2, 1: 3}


def test_at_takes_one_step(m):
    assert m.at("accuracy", 2, arm="network").by_seed == pytest.approx({0: 0.2, 1: 0.4, 2: 0.6})
    assert m.at("accuracy", 3).by_seed == pytest.approx({0: 0.3, 1: 0.6, 2: 0.9})


def test_best_takes_the_largest_of_a_curve():
    m = measurements([("a", "s", 0, step, "accuracy", v) for step, v in enumerate([0.1, 0.8, 0.5])])
    assert m.best("accuracy").by_seed == {0: 0.8}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_best_of_a_diverged_curve_is_not_a_number(bad):
    heights = {0: [0.1, bad, 0.9], 1: [0.1, 0.2, 0.3], 2: [0.2, 0.2, 0.2]}
    m = measurements(
        [("a", "s", seed, step, "accuracy", v) for seed, vs in heights.items() for step, v in enumerate(vs)]
    )
    best = m.best("accuracy")
    assert math.isnan(best.by_seed[0])
    assert (best.by_seed[1], best.by_seed[2]) == (0.3, 0.2)
    assert best.at_least(0).verdict == best.at_most(1).verdict == "fails"


def test_curve_is_sorted_by_seed_and_step():
    m = measurements([("a", "s", seed, step, "loss", 10 * seed + step) for seed in (1, 0) for step in (2, 0, 1)])
    assert m.curve("loss")["value"].to_list() == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize("query", ["final", "best", "curve", "area"])
def test_two_conditions_are_never_mixed(m, query):
    # The network has a step more than the kernel: taking each seed's last row would silently choose the network.
    with pytest.raises(AmbiguousQuery, match=r"several rows per seed; choose one by arm$"):
        getattr(m, query)("accuracy")


def test_curves_that_interleave_are_not_woven_into_one():
    rows = [(arm, "s", seed, step, "loss", 1.0) for seed in range(3) for arm, step in (("a", 0), ("b", 1))]
    with pytest.raises(AmbiguousQuery, match=r"choose one by arm$"):
        measurements(rows).curve("loss")


def test_at_and_steps_to_refuse_several_rows_per_seed(m):
    with pytest.raises(AmbiguousQuery, match=r"choose one by arm$"):
        m.at("accuracy", 2)
    with pytest.raises(AmbiguousQuery, match=r"choose one by arm$"):
        m.steps_to("accuracy", 0.1)
    with pytest.raises(AmbiguousQuery, match=r"choose one by arm$"):
        m.final("accuracy", arm=["network", "kernel"])


def test_a_row_recorded_twice_is_refused():
    m = measurements([("a", "s", 0, 1, "loss", 1.0), ("a", "s", 0, 1, "loss", 1.0)])
    with pytest.raises(AmbiguousQuery, match="recording it once"):
        m.final("loss")


def test_steps_to_is_the_first_step_and_is_censored_at_the_last(m):
    steps = m.steps_to("accuracy", 0.35, arm="network")
    assert steps.by_seed == {0: 3, 1: 2, 2: 2}  # seed 0 never gets there and counts with its last step
    assert steps.what == "steps to 0.35 in accuracy of network"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_diverged_run_has_no_step_at_which_it_reaches_a_level(bad):
    """Counted with its last step, a diverged comparator would be a slow one, and a claim to be faster would hold."""
    heights = {0: [0.1, bad, 0.6, 0.7], 1: [0.6, 0.7, bad, bad], 2: [0.1, 0.2, 0.6, 0.7]}
    m = measurements(
        [("a", "s", seed, step, "accuracy", v) for seed, vs in heights.items() for step, v in enumerate(vs)]
    )
    steps = m.steps_to("accuracy", 0.5)
    assert math.isnan(steps.by_seed[0])
    assert math.isnan(steps.by_seed[1])
    assert steps.by_seed[2] == 2
    assert math.isnan(m.area("accuracy").by_seed[0])


def test_area_is_the_trapezoid_rule_over_uneven_steps():
    m = measurements([("a", "s", 0, step, "loss", v) for step, v in ((0, 0.0), (1, 1.0), (3, 1.0))])
    assert m.area("loss").by_seed == pytest.approx({0: 2.5 / 3})
    with pytest.raises(AmbiguousQuery, match="one step"):
        measurements([("a", "s", 0, 1, "loss", 1.0)]).area("loss")


def test_every_keeps_all_rows_and_counts_seeds(m):
    every = m.every("accuracy", arm="network")
    assert (len(every.values), every.seeds) == (12, 3)
    judgement = every.named("height").between(0, 0.9, tolerance=1e-9)
    assert judgement.verdict == "holds"
    assert judgement.criterion == "every height in [0, 0.9] (tolerance 1e-09)"
    assert every.at_most(0.8).estimate == pytest.approx(0.9)
    assert every.at_least(0.1).verdict == "fails"


def test_every_of_several_arms_needs_each_of_them(m):
    assert len(m.every("accuracy", arm=["network", "kernel"]).values) == 12 + 9
    with pytest.raises(NotMeasured, match="the arm 'forest' did not run"):
        m.every("accuracy", arm=["network", "forest"])
    assert len(m.rows("accuracy", arm=["network", "forest"])) == 12  # what is there is drawn


def test_rows_select_by_value_by_list_and_by_absence(m):
    assert m.rows("accuracy", step=[0, 1])["step"].unique().sort().to_list() == [0, 1]
    assert m.rows(step=None)["metric"].unique().to_list() == ["rank"]
    assert set(m.rows(["accuracy", "rank"])["metric"]) == {"accuracy", "rank"}


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"arm": "forest"}, "the arm 'forest' did not run"),
        ({"colour": "red"}, "nothing was measured with a column 'colour'"),
        ({"step": 99}, "nothing was measured for metric accuracy, step 99"),
        ({"arm": []}, "nothing was measured for"),
    ],
)
def test_what_was_not_measured_says_so(m, where, says):
    with pytest.raises(NotMeasured, match=says):
        m.rows("accuracy", **where)


def test_differences_pair_equal_seeds():
    a, b = Values({0: 1.0, 1: 5.0, 2: 9.0}, "a"), Values({2: 1.0, 1: 2.0, 7: 100.0}, "b")
    difference = a - b
    assert difference.by_seed == {1: 3, 2: 8}
    assert difference.what == "a − b"
    assert (a + b).by_seed == {1: 7, 2: 10}
    assert (a * b).by_seed == {1: 10, 2: 9}
    assert (a / b).by_seed == {1: 2.5, 2: 9}
    assert (a - 1).by_seed == {0: 0, 1: 4, 2: 8}
    with pytest.raises(AmbiguousQuery, match="share no seed"):
        a - Values({8: 0.0}, "c")


def test_pairing_decides_what_unpaired_seeds_could_not():
    # The seeds differ by tens, the arms by one in every seed.
    base = Values({seed: 10.0 * seed for seed in range(4)}, "base")
    better = Values({seed: 10.0 * seed + 1 + 0.01 * seed for seed in range(4)}, "better")
    assert (better - base).above(0).verdict == "holds"
    assert better.above(float(base.array.mean())).verdict == "undecided"


def test_division_by_zero_never_holds():
    ratio = Values({0: 1.0, 1: 1.0, 2: 1.0}) / Values({0: 0.0, 1: 1.0, 2: 1.0})
    assert math.isnan(ratio.by_seed[0])
    assert ratio.at_least(-1e9).verdict == "fails"


def test_criteria_of_values():
    values = Values({0: 1.0, 1: 1.0, 2: 1.0}, "share")
    assert values.at_least(1).verdict == "holds"
    assert values.at_most(1).verdict == "holds"
    assert values.above(1).verdict == "fails"
    assert values.below(1).verdict == "fails"
    assert values.between(0, 2).criterion == "share in [0, 2]"
    assert values.map(lambda v: -v).named("loss").at_least(0).criterion == "loss ≥ 0"


def test_arrays_are_stacked_in_the_order_of_seeds():
    parts = {"w": [([2, 3], np.array([[2.0], [3.0]])), ([0, 1], np.array([[0.0], [1.0]]))]}
    m = measurements([], arrays=lambda key, where: parts.get(key, []))
    assert m.array("w").tolist() == [[0], [1], [2], [3]]
    with pytest.raises(NotMeasured, match="no array 'w' at step 5"):
        m.array("w", step=5)
    parts["w"].append(([1], np.array([[9.0]])))
    with pytest.raises(AmbiguousQuery, match="several units per seed"):
        m.array("w")


def test_notes_and_printed_numbers():
    paper = pl.DataFrame({"method": ["network", "ntk"], "value": [0.99, 0.61]})
    m = measurements([], notes=[{"arm": "a", "rate": 0.1}, {"arm": "b", "rate": 0.2}], paper=paper)
    assert m.notes(arm="b") == [{"arm": "b", "rate": 0.2}]
    assert m.notes(rate=0.3) == []
    with pytest.raises(NotMeasured, match="no unit of arm 'c'"):
        m.notes(arm="c")
    assert m.paper_value(method="ntk") == 0.61
    assert m.paper_value(method="forest") is None
    assert m.paper_value(colour="red") is None
    assert m.params_of("any").dim == 3


def test_another_table_gives_other_answers():
    """Rows of an arm are cut out once, of the table that is there when they are asked for."""
    first = pl.DataFrame({"arm": "a", "seed": [0, 1, 2], "step": None, "metric": "x", "value": [1.0, 2.0, 3.0]})
    measured = Measurements(first, None)
    assert measured.rows("x", arm="a")["value"].to_list() == [1.0, 2.0, 3.0]
    measured.frame = first.with_columns(value=pl.col("value") * 2, arm=pl.lit("b"))
    assert measured.rows("x", arm="b")["value"].to_list() == [2.0, 4.0, 6.0]
    with pytest.raises(NotMeasured, match="the arm 'a' did not run"):
        measured.rows("x", arm="a")
