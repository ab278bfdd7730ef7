"""Tables that figures are made of."""

import numpy as np
import polars as pl

from assay.lab import Every, Exact, Values, charts


def _values(*numbers):
    return Values(dict(enumerate(numbers)), "x")


def test_a_quantity_has_its_mean_and_interval():
    found = charts.quantities({"slope": (_values(1.0, 2.0, 3.0), "2")})
    mean, _, interval = found["measured"][0].partition(" ")
    low, high = (float(end) for end in interval.strip("[]").split(", "))
    judged = _values(1.0, 2.0, 3.0).at_least(0)
    assert float(mean) == 2
    np.testing.assert_allclose([low, high], [judged.low, judged.high], rtol=1e-3)
    assert (found["quantity"][0], found["expected"][0]) == ("slope", "2")


def test_many_rows_have_a_range_and_equal_ones_a_number():
    rows = pl.DataFrame({"seed": [0, 1, 2], "value": [-0.0, 1e-16, 2e-16]})
    equal = rows.with_columns(value=pl.lit(-0.0))
    found = charts.quantities({"deviation": (Every(rows), "0"), "change": (Every(equal), "0")})
    assert found["measured"].to_list() == ["0 to 2e-16", "0"]


def test_numbers_without_an_interval_stand_alone():
    found = charts.quantities({"exact": (Exact(128.0), "at most 128"), "one seed": (_values(0.25), "")})
    assert found["measured"].to_list() == ["128", "0.25"]


def test_what_is_not_finite_is_seen():
    rows = pl.DataFrame({"seed": [0, 1], "value": [1.0, float("nan")]})
    assert "nan" in charts.quantities({"broken": (Every(rows), "1")})["measured"][0]
