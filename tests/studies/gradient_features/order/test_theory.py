from __future__ import annotations

import math

import pytest
import torch

from assay.lab import Values, pool
from assay.studies.gradient_features.order.theory import (
    correlation,
    distance,
    least_loss,
    oracle,
    ordered_share,
    times_fallen_back,
)
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


def test_distance_of_functions_does_not_know_their_scale():
    a = torch.tensor([[1.0, 2.0, -2.0]])
    assert float(distance(a, 5 * a)) == pytest.approx(0, abs=1e-3)
    assert float(distance(a, -a)) == pytest.approx(2)
    assert float(distance(a, torch.tensor([[2.0, -1.0, 0.0]]))) == pytest.approx(math.sqrt(2))
    assert float(distance(a, torch.zeros(1, 3))) == pytest.approx(math.sqrt(2))


def test_the_least_loss_of_an_oracle_is_that_of_its_best_scale():
    problem = GaussianMixture.multi_xor(6, (0.4, 0.4, 0.1, 0.1), (1.0, -1.0, 1.0, -1.0), norm=4.0)
    centres, labels = problem.means.unsqueeze(0), problem.component_labels.unsqueeze(0)
    # At the centres the oracle of two of four axes has the margin 2c there and 0 elsewhere.
    assert float(least_loss(oracle(problem, centres, (1.0, -1.0)), labels)) == pytest.approx(0.5, abs=1e-4)
    assert float(least_loss(oracle(problem, centres, (1.0, -1.0, 1.0, -1.0)), labels)) == pytest.approx(0, abs=1e-4)
    outputs, signs = torch.randn(2, 300), torch.randn(2, 300).sign()
    slow = torch.stack([(1 - signs * c * outputs).clamp(min=0).mean(1) for c in torch.linspace(0, 4, 4001)]).amin(0)
    assert torch.allclose(least_loss(outputs, signs), slow, atol=1e-4)


def test_order_is_judged_between_different_ranks_alone():
    assert ordered_share([1, 2, 3, 4], [0, 0, 1, 1]) == 1
    assert ordered_share([2, 1, 4, 3], [0, 0, 1, 1]) == 1
    assert ordered_share([4, 3, 2, 1], [0, 0, 1, 1]) == -1
    assert ordered_share([1, 5, 5, 9], [0, 0, 1, 1]) == pytest.approx(3 / 4), "equal times are neither"
    assert math.isnan(ordered_share([1, math.nan], [0, 1]))
