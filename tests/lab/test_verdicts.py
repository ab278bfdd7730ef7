"""Intervals over seeds, regions and verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from assay.lab import Judgement, Region
from assay.lab.findings import Claim, Finding
from assay.lab.verdicts import every, not_run, over_seeds

RANK = {"fails": 0, "undecided": 1, "holds": 2}
numbers = st.floats(-100, 100)
samples = st.lists(numbers, min_size=3, max_size=12).map(np.array)


def judged(values, **region) -> Judgement:
    return over_seeds(np.array(values, dtype=float), Region(**region))


def judged_every(values, *, seeds=3, tolerance=0.0, **region) -> Judgement:
    whose = [i % seeds for i in range(len(values))]
    return every(np.array(values, dtype=float), Region(**region), seeds=whose, tolerance=tolerance)


def test_student_interval_against_hand_values():
    # mean 3, standard deviation sqrt(2.5), t(0.975; 4 degrees) = 2.776445: half width 2.776445 * sqrt(2.5 / 5)
    judgement = judged([1, 2, 3, 4, 5], low=0)
    assert judgement.estimate == 3
    assert judgement.low == pytest.approx(3 - 1.963243, abs=1e-6)
    assert judgement.high == pytest.approx(3 + 1.963243, abs=1e-6)
    assert judgement.seeds == 5


@given(samples)
def test_student_interval_against_scipy(values):
    assume(values.std() > 1e-6)
    judgement = over_seeds(values, Region(low=0))
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (judgement.low, judgement.high) == pytest.approx((interval.low, interval.high), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("values", "region", "verdict"),
    [
        ([1, 2, 3, 4, 5], {"low": 1.0}, "holds"),  # the interval is [1.04, 4.96]
        ([1, 2, 3, 4, 5], {"low": 1.1}, "undecided"),
        ([1, 2, 3, 4, 5], {"low": 4.9}, "undecided"),
        ([1, 2, 3, 4, 5], {"low": 5.0}, "fails"),
        ([1, 2, 3, 4, 5], {"high": 5.0}, "holds"),
        ([1, 2, 3, 4, 5], {"high": 4.9}, "undecided"),
        ([1, 2, 3, 4, 5], {"high": 1.0}, "fails"),
        ([1, 2, 3, 4, 5], {"low": 1.0, "high": 5.0}, "holds"),
        ([1, 2, 3, 4, 5], {"low": 2.0, "high": 4.0}, "undecided"),
        ([1, 2, 3, 4, 5], {"low": 5.0, "high": 6.0}, "fails"),
        ([2, 2, 2], {"low": 2.0}, "holds"),
        ([2, 2, 2], {"low": 2.0, "open": True}, "fails"),
        ([2, 2, 2], {"high": 2.0}, "holds"),
        ([2, 2, 2], {"high": 2.0, "open": True}, "fails"),
        ([2, 2, 2], {"low": 1.0, "high": 2.0, "open": True}, "fails"),
        ([2, 2, 2], {"low": 1.0, "high": 3.0, "open": True}, "holds"),
    ],
)
def test_verdict_over_seeds(values, region, verdict):
    assert judged(values, **region).verdict == verdict


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("region", [{"low": -1e9}, {"high": 1e9}, {"low": -1e9, "high": 1e9}, {}])
def test_a_value_that_is_not_finite_never_holds(bad, region):
    judgement = judged([bad, 1, 1, 1], **region)
    assert judgement.verdict == judged_every([bad, 1, 1], **region).verdict == "fails"
    assert "1 of 4 seeds have no finite value" in judgement.reason
    assert judgement.estimate == 1


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_seeds_are_undecided(count):
    for judgement in (judged([5] * count, low=0), judged_every([5] * count, seeds=count, low=0)):
        assert judgement.verdict == "undecided"
        assert "needs 3" in judgement.reason
        assert (judgement.estimate, judgement.seeds) == (5, count)


def test_a_value_that_is_not_finite_decides_nothing_with_few_seeds():
    judgement = judged_every([math.nan, 1], seeds=2, low=0)
    assert (judgement.verdict, judgement.reason) == ("undecided", "2 seeds, and a verdict needs 3")
    assert judged_every([math.nan, 1, 1], seeds=3, low=0).reason == "a value is not finite (seed 0)"
    assert judged([math.nan, 1], low=0).reason == "2 seeds, and a verdict needs 3"


def test_what_every_allows_is_what_is_drawn():
    judgement = judged_every([1.05, 1, 1], low=0, high=1, tolerance=0.1)
    assert judgement.verdict == "holds"
    assert judgement.region is not None
    assert judgement.region.contains(judgement.low, judgement.high)


def test_every_counts_seeds_and_not_rows():
    assert judged_every([5] * 100, seeds=2, low=0).verdict == "undecided"
    assert judged_every([5] * 100, seeds=3, low=0).verdict == "holds"


@pytest.mark.parametrize(
    ("region", "worst", "verdict"),
    [
        ({"low": 1.0}, 1, "holds"),
        ({"low": 1.5}, 1, "fails"),
        ({"high": 4.0}, 4, "holds"),
        ({"high": 3.0}, 4, "fails"),
        ({"low": 2.5, "high": 5.0}, 1, "fails"),
        ({"low": 0.0, "high": 3.5}, 4, "fails"),
        ({"low": 1.0, "open": True}, 1, "fails"),
    ],
)
def test_every_estimates_the_worst_case_and_gives_the_range(region, worst, verdict):
    judgement = judged_every([2, 1, 4], **region)
    assert (judgement.estimate, judgement.low, judgement.high) == (worst, 1, 4)
    assert judgement.verdict == verdict


def test_every_has_an_explicit_tolerance():
    assert judged_every([0.0, 1.0, 1.01], high=1.0).verdict == "fails"
    within = judged_every([0.0, 1.0, 1.01], high=1.0, tolerance=0.02)
    assert within.verdict == "holds"
    assert "tolerance 0.02" in within.criterion
    assert judged_every([0.0, 1.0, 1.03], high=1.0, tolerance=0.02).verdict == "fails"


@pytest.mark.parametrize(
    ("region", "text"),
    [
        (Region(low=0.99), "≥ 0.99"),
        (Region(high=0.5), "≤ 0.5"),
        (Region(low=0, open=True), "> 0"),
        (Region(high=0, open=True), "< 0"),
        (Region(0.25, 0.75), "in [0.25, 0.75]"),
        (Region(0.25, 0.75, open=True), "in (0.25, 0.75)"),
    ],
)
def test_criterion_in_words(region, text):
    assert region.text() == text


@pytest.mark.parametrize("ends", [(2, 1), (math.nan, 1), (0, math.nan)])
def test_an_impossible_region_is_refused(ends):
    with pytest.raises(ValueError, match="no value lies between"):
        Region(*ends)


@given(samples, numbers, numbers)
def test_verdict_is_monotone_in_the_level(values, a, b):
    easy, hard = min(a, b), max(a, b)
    for build in (lambda level: Region(low=level), lambda level: Region(low=level, open=True)):
        assert RANK[over_seeds(values, build(easy)).verdict] >= RANK[over_seeds(values, build(hard)).verdict]
    assert RANK[over_seeds(values, Region(high=hard)).verdict] >= RANK[over_seeds(values, Region(high=easy)).verdict]


@given(samples, numbers)
def test_a_criterion_holds_exactly_when_its_complement_fails(values, level):
    opposite = {"holds": "fails", "fails": "holds", "undecided": "undecided"}
    at_least = over_seeds(values, Region(low=level))
    below = over_seeds(values, Region(high=level, open=True))
    assert below.verdict == opposite[at_least.verdict]


@given(samples, numbers, st.floats(-50, 50))
def test_shifting_values_and_level_together_changes_no_verdict(values, level, shift):
    plain = over_seeds(values, Region(low=level))
    assume(min(abs(plain.low - level), abs(plain.high - level)) > 1e-6)
    assert over_seeds(values + shift, Region(low=level + shift)).verdict == plain.verdict


@given(samples, numbers, numbers, st.floats(0, 10))
def test_every_against_a_loop(values, a, b, tolerance):
    low, high = min(a, b), max(a, b)
    judgement = every(values, Region(low, high), seeds=range(len(values)), tolerance=tolerance)
    met = True
    for value in values:
        met = met and low - tolerance <= value <= high + tolerance
    assert judgement.verdict == ("holds" if met else "fails")
    assert judgement.low <= judgement.estimate <= judgement.high


def finding(judgement, **options) -> Finding:
    claim = Claim("C1", "it is so", "Theorem 1", lambda m: judgement, {}, **options)
    return Finding("coin", claim, judgement, "smoke", {"bias": "0.6"})


def test_row_has_the_promised_keys_and_no_nan():
    row = finding(judged([1, 2, 3], low=0)).row()
    keys = "study id headline statement source verdict estimate low high criterion seeds run preset set"
    assert set(keys.split()) <= set(row)
    assert not any(isinstance(value, float) and math.isnan(value) for value in row.values())
    assert row["set"] == {"bias": "0.6"}
    empty = finding(not_run("the arm did not run"), printed="it is not so", paper=0.5).row()
    assert (empty["estimate"], empty["low"], empty["high"]) == (None, None, None)
    assert (empty["verdict"], empty["seeds"], empty["reason"]) == ("not run", 0, "the arm did not run")
    assert (empty["printed"], empty["paper"]) == ("it is not so", 0.5)


def test_a_control_is_a_claim_whose_identifier_starts_with_n():
    assert Claim("N1", "s", "s", lambda m: None, {}).control
    assert not Claim("C1", "s", "s", lambda m: None, {}).control
