from __future__ import annotations

import math

import pytest

from assay.studies.gradient_features.sample_needs.theory import samples_needed


def test_the_level_is_met_between_two_counts_on_a_logarithmic_axis():
    assert samples_needed([10, 100], [0.5, 0.9], 0.7) == pytest.approx(math.sqrt(1000))
    assert samples_needed([10, 100, 1000], [0.5, 0.6, 0.8], 0.8) == pytest.approx(1000)
    assert samples_needed([10, 100, 1000, 10_000], [0.5, 0.8, 0.6, 0.9], 0.7) < 100, "the first time counts"


@pytest.mark.parametrize("accuracies", [[0.5, 0.6], [0.8, 0.9], [0.75, 0.6]])
def test_a_number_beyond_the_counts_is_not_known(accuracies):
    assert math.isnan(samples_needed([10, 100], accuracies, 0.7))


def test_a_power_law_has_its_slope():
    counts = [2.0**i for i in range(12)]
    found = [samples_needed(counts, [0.5 + 0.4 * min(1, n / d**1.5) for n in counts], 0.7) for d in (16, 64)]
    assert math.log(found[1] / found[0]) / math.log(4) == pytest.approx(1.5, abs=0.05)
