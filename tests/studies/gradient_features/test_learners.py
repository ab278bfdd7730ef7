from __future__ import annotations

import pytest
import torch

from assay.studies.gradient_features.learners import (
    RELU,
    errors,
    first_step,
    hidden_layer,
    knot_rate,
    sampled_gradients,
    stepped,
    symmetric_start,
    train_both,
    wrong,
)
from assay.studies.gradient_features.problem import GaussianMixture
from assay.studies.gradient_features.theory import simplified_gradient
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = GaussianMixture.xor(8, 1.0)
START = symmetric_start(SEEDS, 5, 8, 2.0)
SAMPLE = PROBLEM.sample(SEEDS, "train", 200)


def test_a_symmetric_start_has_four_signed_copies_and_output_zero():
    m = 5
    assert START.output.shape == (2, 4 * m)
    assert float(START(SAMPLE.inputs, RELU).abs().max()) < 1e-12
    w, a = START.weights, START.output
    assert torch.equal(w[:, m : 2 * m], -w[:, :m])
    assert torch.equal(w[:, 2 * m :], w[:, : 2 * m])
    assert torch.equal(a[:, m : 2 * m], -a[:, :m])
    assert torch.equal(a[:, 2 * m :], -a[:, : 2 * m])
    with pytest.raises(ValueError, match="above 0"):
        symmetric_start(SEEDS, 5, 8, 0.0)


def test_gradients_of_mirrored_neurons_follow_from_the_first_ones():
    slow = simplified_gradient(SAMPLE.inputs, SAMPLE.labels, START.weights, -START.biases)
    assert torch.allclose(sampled_gradients(START, SAMPLE), slow, atol=1e-12)


def test_after_the_step_weights_know_their_start_through_gates_alone():
    found = sampled_gradients(START, SAMPLE)
    net = first_step(START, found, torch.tensor([0.5, 2.0]).double())
    assert torch.allclose(net.weights[:, :10], -net.weights[:, 10:])
    assert torch.allclose(net.weights[1], 2.0 * START.output[1].unsqueeze(-1) * found[1])
    assert float(net.output.abs().max()) == 0
    doubled = symmetric_start(SEEDS, 5, 8, 2.0)
    assert torch.allclose(
        sampled_gradients(type(doubled)(3 * doubled.weights, 3 * doubled.biases, doubled.output), SAMPLE), found
    )


def test_the_step_with_a_head_is_gradient_descent_with_decay_one_over_rate():
    """Against autograd on the hinge loss plus decay/2·(‖W‖² + ‖a‖²)."""
    rate = 0.3
    weights, output = (part.clone().requires_grad_(True) for part in (START.weights, START.output))
    hidden = torch.relu(SAMPLE.inputs @ weights.mT + START.biases.unsqueeze(1))
    outputs = (hidden @ output.unsqueeze(-1)).squeeze(-1)
    loss = (1 - SAMPLE.labels * outputs).clamp(min=0).mean(1).sum()
    (loss + (weights.square().sum() + output.square().sum()) / (2 * rate)).backward()
    head = (hidden * SAMPLE.labels.unsqueeze(-1)).mean(1).detach()
    net = first_step(START, sampled_gradients(START, SAMPLE), torch.full((2,), rate).double(), head)
    assert torch.allclose(net.weights, (weights - rate * weights.grad).detach(), atol=1e-12)
    assert torch.allclose(net.output, (output - rate * output.grad).detach(), atol=1e-12)


def test_the_median_switch_lies_at_the_knot():
    found = sampled_gradients(START, SAMPLE)
    net = stepped(START, found, knot=1.5)
    switches = net.biases.abs() / net.weights.norm(dim=-1)
    assert torch.allclose(switches.median(1).values, torch.full((2,), 1.5).double())
    assert torch.allclose(knot_rate(START, found, 3.0), knot_rate(START, found, 1.5) / 2)


def test_training_both_layers_follows_autograd_and_leaves_thresholds_and_start_alone():
    net = stepped(START, sampled_gradients(START, SAMPLE), knot=1.5)
    before = net.clone()
    steps = list(train_both(net, lambda step: SAMPLE.part(10 * step, 10 * step + 10), 0.1, 2))
    assert [step for step, _ in steps] == [0, 1, 2]
    now, last = steps[1][1], steps[2][1]
    weights, output = (part.clone().requires_grad_(True) for part in (now.weights, now.output))
    batch = SAMPLE.part(20, 30)
    outputs = (torch.relu(batch.inputs @ weights.mT + now.biases.unsqueeze(1)) @ output.unsqueeze(-1)).squeeze(-1)
    (1 - batch.labels * outputs).clamp(min=0).mean(1).sum().backward()
    assert torch.allclose(last.weights, (weights - 0.1 * weights.grad).detach(), atol=1e-12)
    assert torch.allclose(last.output, (output - 0.1 * output.grad).detach(), atol=1e-12)
    assert torch.equal(last.biases, before.biases)
    assert torch.equal(net.weights, before.weights)


def test_outputs_of_zero_are_wrong_and_infinite_ones_have_no_error():
    labels = torch.tensor([[1.0, -1.0], [1.0, -1.0]])
    found = wrong(torch.tensor([[1.0, 0.0], [float("inf"), -1.0]]), labels)
    assert float(found[0]) == 0.5
    assert bool(found[1].isnan())
    silent = first_step(START, sampled_gradients(START, SAMPLE), torch.ones(2).double())
    assert errors(silent, SAMPLE).tolist() == [1.0, 1.0]


def test_hidden_layers_are_the_networks_own():
    inputs = SAMPLE.inputs[1]
    expected = START.preactivation(SAMPLE.inputs)[1].clamp(min=0)
    assert torch.allclose(hidden_layer(START)(1, inputs), expected, atol=1e-12)
