"""Intervals against SciPy, enumeration and known cases."""

import math

import pytest

from assay.probes.intervals import (
    Interval,
    clopper_pearson,
    mean_interval,
    median_interval,
    share_interval,
    sign_test,
    student,
    sum_interval,
)


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 30, 200, 5000])
def test_students_quantile(freedom):
    stats = pytest.importorskip("scipy.stats")
    assert student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-4)


def test_mean_interval():
    found = mean_interval([1.0, 2.0, 3.0])
    assert found.estimate == 2
    assert found.high - 2 == pytest.approx(4.3027 / math.sqrt(3), rel=1e-3)
    assert found.low + found.high == pytest.approx(4)
    assert mean_interval([1.0, 2.0]).compared() == "undecided"
    assert math.isnan(mean_interval([1.0, 2.0, math.nan]).low)
    assert math.isnan(mean_interval([]).estimate)


@pytest.mark.parametrize(("count", "cut"), [(6, 0), (8, 0), (9, 1), (20, 5), (100, 39)])
def test_median_interval_is_the_exact_pair_of_order_statistics(count, cut):
    found = median_interval(range(count))
    assert (found.low, found.high) == (cut, count - 1 - cut)
    assert found.estimate == (count - 1) / 2
    outside = 2 * sum(math.comb(count, k) for k in range(cut + 1)) / 2**count
    assert outside <= 0.05


def test_five_values_have_no_median_interval():
    assert math.isnan(median_interval([1, 2, 3, 4, 5]).low)


def test_sign_test():
    assert sign_test([1.0] * 8) == pytest.approx(2 / 256)
    assert sign_test([1.0, -1.0, 0.0]) == 1
    assert sign_test([]) == 1
    stats = pytest.importorskip("scipy.stats")
    assert sign_test([1.0] * 14 + [-1.0] * 5) == pytest.approx(stats.binomtest(5, 19).pvalue)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (250, 8192)])
def test_the_exact_interval_of_a_share_is_scipys(successes, trials):
    stats = pytest.importorskip("scipy.stats")
    theirs = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert clopper_pearson(successes, trials) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_comparing():
    found = Interval(0.2, 0.1, 0.3, 9)
    assert (found.compared(), found.compared(0.2), found.compared(0.4)) == ("above", "undecided", "below")
    assert str(found) == "0.200 [0.100, 0.300]"
    assert [each.sign for each in (found, Interval(-1, -2, -0.1, 9), Interval(0, -1, 1, 9))] == [1, -1, 0]


@pytest.mark.parametrize(("right", "trials"), [(0, 5), (5, 5), (3, 10), (93, 100)])
def test_a_share_has_wilsons_interval(right, trials):
    stats = pytest.importorskip("scipy.stats")
    found, theirs = share_interval(right, trials), stats.binomtest(right, trials).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert found.low < found.high
    assert found.low <= found.estimate <= found.high
    assert math.isnan(share_interval(math.nan, trials).low)


def test_a_sum_of_shares_holds_the_true_sum_as_often_as_it_says():
    one, other = share_interval(90, 100), share_interval(70, 100)
    found = sum_interval([(1.0, one), (-1.0, other)])
    assert found.estimate == pytest.approx(0.2)
    # Newcombe's interval of a difference of two shares, method 10.
    low = 0.2 - math.hypot(0.9 - one.low, other.high - 0.7)
    assert found.low == pytest.approx(low)
    stats = pytest.importorskip("scipy.stats")
    truth, inside, weight = (0.95, 0.8), 0.0, 0.0
    for a in range(41):  # exact coverage at 40 trials each, by enumeration
        for b in range(41):
            chance = stats.binom.pmf(a, 40, truth[0]) * stats.binom.pmf(b, 40, truth[1])
            at = sum_interval([(1.0, share_interval(a, 40)), (-1.0, share_interval(b, 40))])
            inside, weight = inside + chance * (at.low <= 0.15 <= at.high), weight + chance
    assert weight == pytest.approx(1)
    assert 0.93 < inside < 0.99
