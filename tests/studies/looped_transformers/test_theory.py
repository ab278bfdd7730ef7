from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods.looped_transformer import LoopedLinearTransformer, estimates
from assay.studies.looped_transformers import theory
from assay.studies.looped_transformers.problem import LinearVectorGeneration
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)


@settings(max_examples=30, deadline=None)
@given(
    dim=st.integers(1, 6), extra=st.integers(1, 12), loops=st.integers(1, 30), alpha=st.sampled_from([1.0, -2.5, 0.3])
)
def test_exact_error_and_trajectory_are_those_of_the_transformer(dim, extra, loops, alpha):
    prompts = LinearVectorGeneration(dim + extra, dim, alpha).sample(SEEDS, "exact")
    eta = theory.step_sizes("1/L", prompts.inputs, loops)
    rows = LoopedLinearTransformer(dim, loops).query_rows(prompts.matrix())
    exact = theory.exact_error(prompts.gram, prompts.truth, eta, alpha)
    measured = (-rows[..., :-1] * prompts.truth).sum(-1) - alpha
    torch.testing.assert_close(measured, exact, rtol=0, atol=1e-12)
    path = theory.exact_trajectory(prompts.gram, prompts.truth, eta)
    torch.testing.assert_close(estimates(rows, alpha) - prompts.truth, path, rtol=0, atol=1e-12)
    # From below in magnitude, and never away from the target. Along the largest eigenvector 1 − ηλ is zero up to the
    # rounding of λ, which is dim epsilons for an eigenvalue of a dim × dim matrix.
    rounding = 4 * dim * torch.finfo(torch.float64).eps * abs(alpha)
    assert bool((exact * math.copysign(1, alpha) <= rounding).all())
    assert bool((exact.abs().diff(dim=0) <= 1e-12).all())


def test_descent_written_out_is_descent_by_autograd():
    prompts = LinearVectorGeneration(9, 3).sample(SEEDS, "autograd")
    eta = torch.full((4,), 0.02, dtype=torch.float64)
    theta = torch.zeros(3, 3, dtype=torch.float64)
    path = theory.gradient_descent(prompts.inputs, prompts.targets, eta)
    for step in range(4):
        theta.requires_grad_()
        loss = 0.5 * (prompts.targets - (prompts.inputs @ theta.unsqueeze(-1)).squeeze(-1)).square().sum()
        theta = theta.detach() - 0.02 * torch.autograd.grad(loss, theta)[0]
        torch.testing.assert_close(path[step + 1], theta)


def test_the_layer_output_is_one_attention_pass():
    prompts = LinearVectorGeneration(9, 3, 0.4).sample(SEEDS, "layer")
    start = SEEDS.normal("start", 3)
    matrix = prompts.matrix(start)
    layer = LoopedLinearTransformer(3, 1, fast=False).attention(matrix)
    printed = theory.layer_output(prompts.inputs, prompts.targets, matrix[:, -1, :-1], 0.4)
    torch.testing.assert_close(layer, printed, rtol=0, atol=1e-12)


def test_the_mean_error_over_the_sphere():
    """3,000 draws: the standard error is below 2 % of the mean."""
    X = torch.randn(16, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    truth = torch.randn(3000, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    truth = truth / truth.norm(dim=1, keepdim=True)
    G, eta = X.T @ X, theory.step_sizes("1/L", X, 5)
    errors = theory.exact_error(G.expand(3000, 4, 4), truth, eta.unsqueeze(1).expand(5, 3000), 2.0)[-1].abs()
    expected = float(theory.mean_error(G, eta, 2.0))
    assert float(errors.mean()) == pytest.approx(expected, abs=4 * float(errors.std()) / math.sqrt(3000))


def test_values_of_the_specification():
    assert theory.edge_condition(16, 4) == pytest.approx(9.0)
    assert theory.edge_condition(32, 4) == pytest.approx(4.38, abs=0.01)
    for kappa, slope in ((4.57, -0.49), (3.13, -0.77), (2.07, -1.32), (1.62, -1.92)):
        assert theory.slope(kappa) == pytest.approx(slope, abs=0.006)
    assert theory.slope_gap(4.57) == pytest.approx(-0.28, abs=0.01)
    assert theory.slope_gap(1.62) == pytest.approx(-1.30, abs=0.01)
    assert theory.competing_error(3, 4, theory.competing_examples(3, 4)) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="n > d"):
        theory.edge_condition(4, 4)


def test_slopes_and_trial_means():
    t = np.arange(100)
    error = np.where(t < 60, np.exp(-0.9 * t), 1e-40)
    assert theory.fitted_slope(t, error, 1e-26) == pytest.approx(-0.9)
    drawn = np.arange(12.0).reshape(2, 6)
    assert theory.trial_means(drawn, 4).tolist() == [[1.5], [7.5]]


def test_one_example_answers_the_task():
    prompts = LinearVectorGeneration(9, 3, -1.7).sample(SEEDS, "shortcut")
    answer = theory.shortcut(prompts.inputs, prompts.targets, -1.7)
    assert float(prompts.task_error(answer).max()) < 1e-12
    assert float(prompts.parameter_error(answer / -1.7).min()) > 1e-3


def test_sheared_and_scaled_weights_are_the_construction():
    prompts = LinearVectorGeneration(9, 3).sample(SEEDS, "shear")
    Q, P = torch.eye(4, dtype=torch.float64), torch.diag(torch.tensor([1.0, 1, 1, 0], dtype=torch.float64))
    b = torch.tensor([0.3, -0.8, 0.5], dtype=torch.float64)
    key, value = theory.shear(3 * Q, P / 3, b)
    right = LoopedLinearTransformer(3, 6)(prompts.matrix())
    sheared = LoopedLinearTransformer(3, 6, "1/L", key, value)(prompts.matrix())
    torch.testing.assert_close(sheared, right, rtol=1e-9, atol=1e-12)
    assert theory.best_cosine(Q, P) == pytest.approx(1)
    assert theory.best_cosine(key, value) == pytest.approx(1, abs=1e-6)
    assert theory.best_cosine(Q, Q) == pytest.approx(math.sqrt(3) / 2, abs=1e-6)
    assert theory.best_cosine(Q, -P) == pytest.approx(-1, abs=0.5)
