"""Criteria in words, and read back from them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assay.lab import Region, Values
from assay.lab.verdicts import every

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: float(f"{value:.6g}"))


@given(st.tuples(NUMBERS, NUMBERS).map(sorted), st.booleans())
def test_what_is_written_is_read(pair, open):
    for region in (Region(*pair, open=open), Region(low=pair[0], open=open), Region(high=pair[1], open=open)):
        assert Region.read(f"accuracy in [0, 1] − 3 {region.text()}") == (region, 0.0)


def test_margins_and_tolerances_do_not_hide_it():
    values = Values({0: 1.0, 1: 1.01, 2: 0.99}, "ratio")
    assert Region.read(values.equals(1, within=0.05, because="a (short) reason").criterion) == (Region(0.95, 1.05), 0.0)
    assert Region.read("every x ≥ 1 (tolerance 1e-09)") == (Region(low=1), 1e-9)
    assert Region.read("no criterion at all") == (None, 0.0)


def test_every_gives_each_seeds_worst():
    judged = every(np.array([1.0, 5.0, 2.0, 3.0, 4.0, 0.5]), Region(high=3), seeds=[0, 0, 1, 1, 2, 2], tolerance=0)
    assert judged.by_seed == (5.0, 3.0, 4.0)
