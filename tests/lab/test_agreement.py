"""Rounding is not company, and company is not rounding."""

import math

import polars as pl
import pytest
import torch

from assay.lab.agreement import ROUNDING, Disagreement, disagreements
from assay.lab.registry import Arm

EPS = {dtype: torch.finfo(getattr(torch, dtype)).eps for dtype in ("float32", "float64")}


def arm(**options):
    return Arm("any", lambda *_: None, **options)


def table(values, *, metric="error", seeds=(0, 1, 2), **columns):
    return pl.DataFrame(
        {
            "seed": list(seeds),
            "step": [None] * len(seeds),
            "metric": metric,
            "value": [float(value) for value in values],
            **columns,
        },
        schema_overrides={"step": pl.Int64},
    )


def only(frame, seed=1):
    return frame.filter(seed=seed)


def test_rounding_errors_of_different_size_agree():
    """What an EPYC gave for a deviation that is zero but for rounding, alone and in company."""
    exact = arm(dtype="float64", tolerance=1e-9)
    assert disagreements(only(table([0, 4.4e-16, 0])), table([1e-15, 2.2e-16, 3e-16]), exact) == []
    assert disagreements(only(table([0, 0, 0])), table([0, 4.4e-16, 0]), exact) == []


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("magnitude", [1e-3, 1.0, 1e4])
def test_the_floor_follows_the_dtype_and_the_magnitude(dtype, magnitude):
    floor = ROUNDING * EPS[dtype] * magnitude
    measured = arm(dtype=dtype, tolerance=0.0, magnitude=magnitude)
    assert disagreements(only(table([0, 0, 0])), table([0, 0.9 * floor, 0]), measured) == []
    found = disagreements(only(table([0, 0, 0])), table([0, 1.1 * floor, 0]), measured)
    assert found == [Disagreement("error", pytest.approx(1.1 * floor), pytest.approx(floor))]


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e-4), ("float64", 1e-12)])
def test_a_mean_over_the_chunk_is_caught_in_a_small_metric(dtype, size):
    own = [1.0 * size, 1.5 * size, 3.0 * size]
    mixed = [sum(own) / 3] * 3
    (found,) = disagreements(only(table(own)), table(mixed), arm(dtype=dtype, tolerance=1e-4))
    assert found.difference == pytest.approx(size / 3)
    assert found.allowed < size / 10


def test_a_smaller_magnitude_catches_coupling_in_a_smaller_metric():
    alone, company = only(table([1e-7, 2e-7, 9e-7])), table([4e-7] * 3)
    assert disagreements(alone, company, arm()) == []
    assert [each.metric for each in disagreements(alone, company, arm(magnitude=1e-3))] == ["error"]


def test_the_tolerance_is_relative_to_the_largest_number_of_the_metric_alone():
    """A large metric lends its size to no other, and a curve that falls to zero is compared at the size it had."""
    large, small = (
        pl.concat([table([0, v, 0], metric=m, step=[s] * 3) for m, s, v in rows])
        for rows in ([("loss", 0, 1e6), ("loss", 1, 1.0)], [("gap", 0, 2.0), ("gap", 1, 1e-3)])
    )
    moved = small.with_columns(value=pl.col("value") + 0.1)
    measured = arm(tolerance=1e-2)
    assert disagreements(only(large), large.with_columns(value=pl.col("value") + 100), measured) == []
    found = disagreements(only(pl.concat([large, small])), pl.concat([moved, large]), measured)
    assert [(each.metric, round(each.difference, 6)) for each in found] == [("gap", 0.1)]
    assert found[0].allowed == pytest.approx(0.02, rel=1e-3)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_agree_with_themselves_only(value):
    alone = only(table([0, value, 0]))
    assert disagreements(alone, table([1, value, 2]), arm()) == []
    for other in (each for each in (0.0, math.nan, math.inf, -math.inf) if str(each) != str(value)):
        for one, two in ((value, other), (other, value)):
            (found,) = disagreements(only(table([0, one, 0])), table([0, two, 0]), arm(tolerance=1e9))
            assert found.difference == math.inf


def test_rows_must_match():
    whole = pl.concat(
        [table([1, 2, 3], layer="first"), table([4, 5, 6], layer=None), table([7, 8, 9], metric="other", layer="first")]
    )
    assert disagreements(only(whole), whole.reverse(), arm()) == []
    without_row = whole.filter(~((pl.col("seed") == 1) & pl.col("layer").is_null()))
    without_metric = whole.filter(metric="error")
    without_seed = whole.filter(pl.col("seed") != 1)
    named_otherwise = whole.with_columns(layer=pl.col("layer").str.replace("first", "last"))
    for alone, company, metrics in [
        (whole, without_row, ["error"]),
        (without_row, whole, ["error"]),
        (whole, without_metric, ["other"]),
        (without_metric, whole, ["other"]),
        (whole, without_seed, ["error", "other"]),
        (whole, named_otherwise, ["error", "other"]),
        (whole, whole.drop("layer"), ["error", "other"]),
        (whole, pl.concat([whole, whole]), ["error", "other"]),
    ]:
        found = disagreements(only(alone), company, arm())
        assert [each.metric for each in found] == metrics
        assert all(each.difference == math.inf for each in found)


def test_what_was_read_off_a_clock_need_not_agree_and_everything_else_must():
    timed = arm(timed=("seconds",))
    alone = pl.concat([only(table([1, 1, 1], metric="seconds")), only(table([0, 1, 0]))])
    company = pl.concat([table([9, 9, 9], metric="seconds"), table([0, 2, 0])])
    assert [each.metric for each in disagreements(alone, company, timed)] == ["error"]
    assert [each.metric for each in disagreements(alone, company, arm())] == ["error", "seconds"]
    (lost,) = disagreements(
        only(table([0, 1, 0])), pl.concat([company.filter(metric="seconds"), table([0, 1, 0])]), timed
    )
    assert (lost.metric, lost.difference) == ("seconds", math.inf)
