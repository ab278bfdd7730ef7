from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods.gradient_descent_rates import step_sizes
from assay.methods.looped_transformer import LoopedLinearTransformer, estimates
from assay.studies.looped_transformers.convergence.theory import (
    competing_examples,
    exact_error,
    exact_trajectory,
    fitted_slope,
    slope,
)
from assay.studies.looped_transformers.problem import LinearVectorGeneration
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)


@settings(max_examples=30, deadline=None)
@given(
    dim=st.integers(1, 6), extra=st.integers(1, 12), loops=st.integers(1, 30), alpha=st.sampled_from([1.0, -2.5, 0.3])
)
def test_exact_error_and_trajectory_are_those_of_the_transformer(dim, extra, loops, alpha):
    prompts = LinearVectorGeneration(dim + extra, dim, alpha).sample(SEEDS, "exact")
    eta = step_sizes("1/L", prompts.inputs, loops)
    rows = LoopedLinearTransformer(dim, loops).query_rows(prompts.matrix())
    exact = exact_error(prompts.gram, prompts.truth, eta, alpha)
    measured = (-rows[..., :-1] * prompts.truth).sum(-1) - alpha
    torch.testing.assert_close(measured, exact, rtol=0, atol=1e-12)
    path = exact_trajectory(prompts.gram, prompts.truth, eta)
    torch.testing.assert_close(estimates(rows, alpha) - prompts.truth, path, rtol=0, atol=1e-12)
    # From below in magnitude, and never away from the target. Along the largest eigenvector 1 − ηλ is zero up to the
    # rounding of λ, which is dim epsilons for an eigenvalue of a dim × dim matrix.
    rounding = 4 * dim * torch.finfo(torch.float64).eps * abs(alpha)
    assert bool((exact * math.copysign(1, alpha) <= rounding).all())
    assert bool((exact.abs().diff(dim=0) <= 1e-12).all())


def test_the_mean_error_over_the_sphere():
    """|α| tr((I − ηG)^T)/d. 3,000 draws: the standard error is below 2 % of the mean."""
    X = torch.randn(16, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    truth = torch.randn(3000, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    truth = truth / truth.norm(dim=1, keepdim=True)
    G, eta = X.T @ X, step_sizes("1/L", X, 5)
    errors = exact_error(G.expand(3000, 4, 4), truth, eta.unsqueeze(1).expand(5, 3000), 2.0)[-1].abs()
    left = torch.linalg.matrix_power(torch.eye(4, dtype=torch.float64) - eta[0] * G, 5)
    expected = 2 * float(left.trace()) / 4
    assert float(errors.mean()) == pytest.approx(expected, abs=4 * float(errors.std()) / math.sqrt(3000))


def test_values_of_the_specification():
    for kappa, expected in ((4.57, -0.49), (3.13, -0.77), (2.07, -1.32), (1.62, -1.92)):
        assert slope(kappa) == pytest.approx(expected, abs=0.006)
    for kappa, expected in ((4.57, -0.28), (1.62, -1.30)):
        assert slope(kappa) + 1 / kappa == pytest.approx(expected, abs=0.01)  # steeper than the bound e^{−t/κ} by this
    # Theorem 8.17's error, 8Td²2^{2T}/√n, is 1 at the fewest examples under which it says anything.
    assert 8 * 3 * 4**2 * 2**6 / math.sqrt(competing_examples(3, 4)) == pytest.approx(1.0)


def test_slopes_are_fitted_above_the_floor():
    t = np.arange(100)
    error = np.where(t < 60, np.exp(-0.9 * t), 1e-40)
    assert fitted_slope(t, error, 1e-26) == pytest.approx(-0.9)
