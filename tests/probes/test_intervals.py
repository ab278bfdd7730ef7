"""Intervals against SciPy, enumeration and known cases."""

import math

import pytest

from assay.probes.intervals import Interval, clopper_pearson, mean_interval, median_interval, sign_test, student


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
