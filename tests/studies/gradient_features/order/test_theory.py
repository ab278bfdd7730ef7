from __future__ import annotations

import math

import pytest
import torch

from assay.lab import Values, pool
from assay.studies.gradient_features.order.theory import correlation, oracle, times_fallen_back
from assay.studies.gradient_features.problem import GaussianMixture


def test_oracles_of_fewer_axes_are_silent_on_the_others():
    problem = GaussianMixture.multi_xor(6, (0.25,) * 4, (1.0, -1.0, 1.0, -1.0), norm=4.0)
    inputs = problem.means.unsqueeze(0)
    assert oracle(problem, inputs, (1.0, -1.0))[0].tolist() == [2, 2, -2, -2, 0, 0, 0, 0]
    assert oracle(problem, inputs, (1.0, -1.0, 1.0, -1.0))[0].tolist() == [2, 2, -2, -2, 2, 2, -2, -2]


def test_correlation_is_scale_free_and_zero_for_a_constant():
    a = torch.tensor([[1.0, 2.0, 4.0]])
    assert float(correlation(a, 3 * a + 1)) == pytest.approx(1)
    assert float(correlation(a, -a)) == pytest.approx(-1)
    assert float(correlation(torch.zeros(1, 3), a)) == 0


def test_a_network_that_was_never_ahead_has_not_stayed_ahead():
    assert times_fallen_back([-1.0, 0.5, 0.2]) == 0
    assert times_fallen_back([-1.0, 0.5, -0.2, 0.1, 0.0]) == 2
    assert math.isnan(times_fallen_back([-1.0, -0.5, 0.0]))
    counted = Values({0: 0.0, 1: 0.0, 2: times_fallen_back([-1.0, -0.5])}, "times")
    assert pool([counted], "times fallen back").at_most(0).verdict == "fails"
