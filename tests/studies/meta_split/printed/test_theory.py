"""The printed scales, by the numbers that the source gives for them."""

import pytest

from assay.studies.meta_split.printed import theory


def test_printed_scales():
    printed = theory.printed_scales(1000)
    assert (printed.K, printed.m) == (343, 18)
    assert printed.sigma_xi == pytest.approx(10.42, abs=0.01)
    assert printed.sigma_s == pytest.approx(0.00066, abs=1e-5)
    assert printed.sigma_0 == pytest.approx(0.032, abs=4e-4)
    assert theory.initial_loss(printed) == pytest.approx(9.9, abs=0.4)
