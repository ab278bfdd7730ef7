"""Formulas against autograd, finite differences, sequences and samples."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods.split_rates import predict_split_effect
from assay.studies.meta_split import theory
from assay.studies.meta_split.linear_centroid import centroid
from assay.studies.meta_split.problem import SharedFeature
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
DOUBLES = st.floats(-5, 5, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(z=DOUBLES, h=st.floats(0.05, 3))
def test_activation_and_its_slope(z, h):
    x = torch.tensor(z, dtype=torch.float64, requires_grad=True)
    value = theory.activation(x, h)
    assert float(value.detach()) >= z - h / 2 - 1e-12
    expected = 0.0 if z < 0 else z * z / (2 * h) if z <= h else z - h / 2
    assert float(value.detach()) == pytest.approx(expected, abs=1e-12)
    (slope,) = torch.autograd.grad(value, x)
    assert float(slope) == pytest.approx(min(max(z / h, 0), 1), abs=1e-9)
    assert float(theory.slope(x.detach(), h)) == pytest.approx(min(max(z / h, 0), 1), abs=1e-12)


@pytest.mark.parametrize("at", [0.0, 0.5])
def test_activation_is_smooth_at_its_knees(at):
    points = torch.tensor([at - 1e-9, at + 1e-9], dtype=torch.float64)
    assert abs(float(theory.activation(points, 0.5).diff())) < 1e-8
    assert abs(float(theory.slope(points, 0.5).diff())) < 1e-8


def test_a_tiny_knee_is_relu():
    z = torch.linspace(-3, 3, 41, dtype=torch.float64)
    assert torch.equal(theory.activation(z, theory.RELU_KNEE), torch.relu(z))
    assert torch.equal(theory.slope(z, theory.RELU_KNEE), (z > 0).double())
    near = theory.activation(z, 1e-6)
    torch.testing.assert_close(near, torch.relu(z), rtol=0, atol=1e-6)


def test_loss_keeps_its_accuracy_for_large_margins():
    x = torch.tensor([0.0, 1.0, 40.0, 300.0], dtype=torch.float64)
    slope = -theory.loss_slope(x)
    assert bool((slope >= torch.exp(-x) / 2).all())
    # log(1 + y) and y are the same number where y is small, and each of the functions on either side may be off by one
    # in its last place: two on the left, one on the right, and one for safety.
    last_places = 1 + 4 * torch.finfo(torch.float64).eps
    assert bool((theory.loss(x) <= torch.exp(-x) * last_places).all())
    assert bool((torch.exp(-x) <= 2 * slope * last_places).all())


def test_the_closed_form_gradient_is_autograds():
    tasks = SharedFeature(30, 6, 3, 4, 2).sample(SEEDS)
    start = (0.3 * SEEDS.normal("filters", 6, 30)).unsqueeze(1).expand(-1, 3, -1, -1).clone().requires_grad_()
    weights = torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.float64)
    total = (weights * theory.loss(tasks.labels * theory.outputs(start, tasks.inputs, 0.5))).sum()
    (slow,) = torch.autograd.grad(total, start)
    fast = theory.gradient(start.detach(), tasks.inputs, tasks.labels, weights, 0.5)
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-12)
    bump = 1e-6
    moved = start.detach().clone()
    moved[0, 1, 2, 5] += bump
    again = (weights * theory.loss(tasks.labels * theory.outputs(moved, tasks.inputs, 0.5))).sum()
    assert float((again - total.detach()) / bump) == pytest.approx(float(fast[0, 1, 2, 5]), abs=1e-5)


def test_the_feature_only_loss_is_the_loss_without_noise():
    problem = SharedFeature(30, 6, 50, 4, 2, task_norm=1e-9, noise_energy=1e-18, distinct=False)
    tasks = problem.sample(SEEDS)
    filters = SEEDS.normal("filters", 6, 30)
    slow = theory.loss(tasks.labels * theory.outputs(filters.unsqueeze(1), tasks.inputs, 0.5)).mean((1, 2))
    torch.testing.assert_close(theory.feature_only_loss(filters[..., 0], 0.5), slow, rtol=0, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(A=st.floats(0.01, 0.5), ratio=st.floats(0.05, 0.95), x0=st.floats(1e-4, 0.1), y0=st.floats(1e-4, 0.1))
def test_the_race_lemma_on_sequences(A, ratio, x0, y0):
    B, x, y = A * ratio, x0, y0
    while x < 1:
        x, y = x * (1 + A), y * (1 + B)
    assert y <= theory.race_bound(x0, A, B, 1.0, y0) * (1 + 1e-9)
    # Its use: a slow runner gains at most (D/x₀)^{log(1+B)/log(1+A)}, one step over.
    assert y / y0 <= (1 / x0) ** (math.log1p(B) / math.log1p(A)) * (1 + B) * (1 + 1e-9)


def test_the_race_refuses_nonsense():
    with pytest.raises(ValueError, match="positive"):
        theory.race_bound(0, 1, 1, 1, 1)


def test_stage_thresholds_and_conditions():
    assert theory.noise_threshold(10, 0.5, 8.0, 4, 5) == pytest.approx(10**-0.5 / 32)
    assert theory.feature_threshold(10, 0.5, 5) == pytest.approx(10**-0.5 / 1.5**5)
    assert theory.unlearned_level(2000) == pytest.approx(0.1495, abs=1e-3)
    assert theory.residual_condition(0.5, 10, 4, 8.0, 5, 2000) < 1e-4
    assert theory.pooled_fails(8.0, 2, 4)
    assert not theory.pooled_fails(8.0, 10, 4)


def test_rates_of_the_base_setting():
    effect = predict_split_effect(8.0, 4, 2, 10, 5, 0.5, task_norm=0.3, initial_scale=1e-4)
    assert effect.train_train.feature == pytest.approx(1.668, abs=2e-3)
    assert effect.train_train.noise == pytest.approx(6.4)
    assert effect.train_val.noise == pytest.approx(0.4)
    assert effect.split_matters
    assert effect.first_train_train == "noise"
    assert effect.first_train_val == "feature"
    assert effect.critical_inner_steps == pytest.approx(2.03, abs=0.05)
    assert effect.critical_tasks == pytest.approx(38.4, abs=0.1)
    assert 4 < effect.critical_noise_energy < 8
    assert effect.critical_tasks_pooled == pytest.approx(4.0)


@pytest.mark.parametrize("split", ["train-train", "train-validation"])
def test_the_linear_centroid_is_the_slow_one(split):
    tasks = SharedFeature(20, 4, 3, 4, 2).sample(SEEDS)
    fast = centroid(tasks, split, 0.7)
    inputs = tasks.inputs.flatten(3)
    for seed in range(2):
        rows, targets = [], []
        for k in range(3):
            x, y = inputs[seed, k], tasks.labels[seed, k]
            ins, outs = (slice(None), slice(None)) if split == "train-train" else (slice(0, 2), slice(2, 4))
            xi, yi, xo, yo = x[ins], y[ins], x[outs], y[outs]
            # argmin of ‖yi − xi θ‖²/n + λ‖θ − w‖² is affine in w: θ = S(xiᵀyi/n + λw).
            solve = torch.linalg.inv(xi.mT @ xi / len(yi) + 0.7 * torch.eye(40, dtype=x.dtype))
            rows.append(xo @ solve * 0.7)
            targets.append(yo - xo @ solve @ xi.mT @ yi / len(yi))
        slow = torch.linalg.pinv(torch.cat(rows)) @ torch.cat(targets)
        torch.testing.assert_close(fast[seed], slow, rtol=0, atol=1e-8)
