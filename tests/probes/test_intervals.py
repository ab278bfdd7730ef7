import math

import pytest

from assay.probes import mean_interval
from assay.probes.intervals import Interval, student_quantile


def test_intervals_are_students():
    assert student_quantile(0.975, 7) == pytest.approx(2.364624, abs=1e-5)
    assert student_quantile(0.975, 1) == pytest.approx(12.7062, abs=1e-3)
    found = mean_interval([1.0, 2.0, 3.0])
    assert found == pytest.approx(Interval(2.0, 2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5), abs=1e-5)
    assert (Interval(1, 0.5, 2).sign, Interval(-1, -2, -0.1).sign, Interval(0, -1, 1).sign) == (1, -1, 0)
    assert math.isnan(mean_interval([1.0]).low)
