"""Formulas against autograd and finite differences."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods.split_rates import predict_split_effect
from assay.studies.meta_split import theory
from assay.studies.meta_split.problem import SharedFeature
from assay.training import Seeds

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
