from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.nuclear_norm.optima import theory
from assay.studies.nuclear_norm.problem import Environments
from assay.studies.nuclear_norm.theory import TwoKinds, minimise
from assay.training.seeds import Seeds

SPECIFIED = Environments(297, 50, 0.45)


@settings(max_examples=20, deadline=None)
@given(r=st.integers(1, 6), m=st.integers(1, 6), gamma=st.floats(0.05, 0.45), ratio=st.floats(0.0, 3.0))
def test_the_closed_form_of_the_norm_is_that_of_the_covariance(r, m, gamma, ratio):
    problem = Environments(r + m, r, gamma)
    weights = torch.tensor([1.0] * r + [ratio] * m, dtype=torch.float64)
    values, vectors = torch.linalg.eigh(problem.second_moments)
    root = vectors @ torch.diag(values.sqrt()) @ vectors.T
    slow = torch.linalg.matrix_norm(root @ torch.diag(weights), ord="nuc")
    fast = theory.nuclear_norm(problem, torch.tensor([1.0, ratio], dtype=torch.float64))
    torch.testing.assert_close(fast, slow)


def test_the_norm_of_many_samples_approaches_the_closed_form():
    problem = Environments(7, 3, 0.3)
    z = problem.sample(Seeds((0,), dtype=torch.float64), "z", 200_000)[0]
    weights = torch.tensor([0.8] * 3 + [0.3] * 4, dtype=torch.float64)
    found = torch.linalg.matrix_norm(z * weights, ord="nuc") / len(z) ** 0.5
    closed = theory.nuclear_norm(problem, torch.tensor([0.8, 0.3], dtype=torch.float64))
    assert float(found) == pytest.approx(float(closed), rel=0.01)


@pytest.mark.parametrize(("decay", "alpha", "beta"), [(0.1, 0.03900, 0.03497), (1.0, 0.02397, 0.02153)])
def test_weight_decay_has_the_specifications_optimum(decay, alpha, beta):
    found = theory.decayed(SPECIFIED, decay)
    assert (found.alpha, found.beta) == pytest.approx((alpha, beta), abs=2e-5)


def test_free_weights_end_alike_within_each_kind():
    """All d weights on their own, on a product of nodes that is the exact law: exchangeable features end alike."""
    problem, decay = Environments(4, 2, 0.3), 0.1
    nodes, shares = (torch.tensor(each) for each in np.polynomial.legendre.leggauss(6))
    up, half = (nodes + 1) / 2, shares / 2
    signed, chances = torch.cat([up, -up]), torch.cat([0.8 * half, 0.2 * half])
    grids = torch.cartesian_prod(up, up, signed, signed)
    mass = torch.cartesian_prod(half, half, chances, chances).prod(1)
    start = torch.tensor([0.1, 0.9, 0.4, 0.2], dtype=torch.float64)
    free = minimise(lambda w: mass @ torch.nn.functional.softplus(-(grids @ w)) + decay / 2 * w.square().sum(), start)
    shared = theory.decayed(problem, decay)
    torch.testing.assert_close(
        free, torch.tensor([shared.alpha] * 2 + [shared.beta] * 2, dtype=torch.float64), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(("problem", "strength"), [(SPECIFIED, 0.03), (Environments(214, 40, 0.48), 0.03)])
def test_no_neighbour_of_the_penalised_optimum_is_better(problem, strength):
    found = theory.penalised(problem, strength)
    kinds = TwoKinds.of(problem)

    def objective(alpha: float, beta: float) -> float:
        at = torch.tensor([alpha, beta], dtype=torch.float64)
        return float(kinds.loss(at) + strength * theory.nuclear_norm(problem, at))

    best = objective(found.alpha, found.beta)
    step = 0.02 * found.alpha
    for a, b in [(step, 0), (-step, 0), (0, step), (step, step), (-step, step)]:
        assert objective(found.alpha + a, found.beta + b) > best
    if found.beta > step:
        assert objective(found.alpha, found.beta - step) > best


def test_the_threshold_is_where_environmental_features_come_in():
    limit = theory.threshold(100)
    for gamma, dropped in ((limit - 0.01, True), (limit + 0.01, False)):
        problem = Environments(theory.smallest_dimension(100, gamma), 100, gamma)
        assert (theory.penalised(problem, 0.03).beta == 0) == dropped
    assert theory.threshold(10**9) == pytest.approx(0.5, abs=1e-4)


def test_nothing_is_learned_under_a_very_strong_norm():
    assert theory.penalised(SPECIFIED, 10.0) == theory.Optimum(0.0, 0.0)


def test_supports_exchange_and_the_loss_without_decay():
    losses = [theory.support_optimum(k, 3 - k, 0.4, 0.05)[0] for k in range(4)]
    assert losses == pytest.approx([0.3805, 0.3390, 0.3077, 0.2825], abs=3e-3)
    assert losses == sorted(losses, reverse=True)
    assert theory.scaled_loss(2, 1000.0) < 1e-3 < theory.scaled_loss(2, 1.0)


def test_a_support_is_judged_outside_at_its_own_weights():
    loss, found = theory.support_optimum(1, 1, 0.4, 0.05)
    assert found.alpha > found.beta > 0
    accuracy = theory.support_accuracy(1, 1, 0.4, found)
    # Margins α·a − β·b are negative for b > (α/β)·a; with equal weights that is so for half of them.
    wrong = 0.9 * found.beta / found.alpha / 2
    assert accuracy == pytest.approx(1 - wrong, abs=0.02)
    assert accuracy > theory.support_accuracy(1, 1, 0.4, theory.Optimum(1.0, 1.0)) + 0.02
    assert theory.support_accuracy(2, 0, 0.4, theory.support_optimum(2, 0, 0.4, 0.05)[1]) == pytest.approx(1)
    assert theory.support_optimum(3, 0, 0.4, 0.05)[0] < loss


def test_conditions_of_the_theory():
    assert theory.smallest_dimension(50, 0.45) == 297
    assert theory.smallest_dimension(400, 0.2) == 10_401
    assert not theory.legal(36, 0.499)
    assert theory.legal(37, 0.499)
    ranges = theory.Hoeffding.of(Environments(10_401, 400, 0.2))
    assert ranges.printed < ranges.exact < ranges.corrected
    # Σ(b − a)² ≤ 5(d − r) turns into e^{−r/10} at the least dimension.
    exponent = (4 * 10_001 * 0.04 - 3 * 400) / 10
    assert math.exp(-exponent) <= math.exp(-400 / 10) * (1 + 1e-9)
