from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.nuclear_norm import theory
from assay.studies.nuclear_norm.problem import Environments
from assay.training.seeds import Seeds


@pytest.mark.parametrize("count", [1, 2, 3, 20, 300])
@pytest.mark.parametrize("gamma", [0.5, 0.4, 0.1])
def test_moments_of_a_sum_are_those_of_its_terms(count, gamma):
    law = theory.SumLaw.of(count, gamma)
    mean = law.points @ law.weights
    variance = (law.points - mean).square() @ law.weights
    assert float(law.weights.sum()) == pytest.approx(1)
    assert float(mean) == pytest.approx(count * gamma, rel=1e-5)
    assert float(variance) == pytest.approx(count * (1 / 3 - gamma**2), rel=1e-5)


def test_few_and_many_give_the_same_expectation():
    few, many = theory._few(3, 0.2), theory._many(3, 0.2)
    values = [float((np.log1p(np.exp(-2 * points)) * weights).sum()) for points, weights in (few, many)]
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_loss_against_samples():
    problem = Environments(12, 4, 0.3)
    kinds, weights = theory.TwoKinds.of(problem), torch.tensor([0.7, 0.4], dtype=torch.float64)
    z = problem.sample(Seeds((0,), dtype=torch.float64), "z", 200_000)[0]
    losses = torch.nn.functional.softplus(-(weights[0] * z[:, :4].sum(1) + weights[1] * z[:, 4:].sum(1)))
    assert abs(float(kinds.loss(weights) - losses.mean())) < 5 * float(losses.std()) / len(z) ** 0.5


def test_newton_finds_the_minimum_of_a_quadratic_and_of_a_steep_function():
    target = torch.tensor([2.0, 0.5], dtype=torch.float64)
    found = theory.minimise(lambda x: (x - target).square().sum() + (x[0] - 4 * x[1]).square(), torch.ones(2))
    torch.testing.assert_close(found, target)
    steep = theory.minimise(lambda x: x.exp().sum() - 3 * x.sum(), torch.full((2,), 5.0))
    torch.testing.assert_close(steep, torch.full((2,), math.log(3), dtype=torch.float64))


@settings(max_examples=20, deadline=None)
@given(s=st.floats(-30, 30), gamma=st.floats(-0.5, 0.5))
def test_cumulants_against_quadrature(s, gamma):
    nodes, shares = np.polynomial.legendre.leggauss(60)
    up = (nodes + 1) / 2
    moment = ((0.5 + gamma) * np.exp(s * up) + (0.5 - gamma) * np.exp(-s * up)) @ (shares / 2)
    found = theory._log_mgf(torch.tensor([s], dtype=torch.float64), gamma)
    assert float(found[0]) == pytest.approx(math.log(moment), abs=1e-7)


def test_chernoff_bounds_the_share_of_right_and_of_wrong_answers():
    problem = Environments(8, 3, 0.2)
    z = problem.sample(Seeds((0,), dtype=torch.float64), "z", 50_000, outside=True)[0]
    margins = 0.5 * z[:, :3].sum(1) + 0.6 * z[:, 3:].sum(1)
    right = float((margins >= 0).double().mean())
    assert math.log(right) <= theory.log_chernoff(problem, 0.5, 0.6) + 0.02
    assert math.log(1 - right) <= theory.log_chernoff(problem, 0.5, 0.6, wrong=True) + 0.05
    assert theory.log_chernoff(problem, 1.0, 0.0) == pytest.approx(0, abs=1e-9)
    assert theory.gaussian_log_accuracy(problem, 0.5, 0.6) == pytest.approx(math.log(right), abs=0.1)
