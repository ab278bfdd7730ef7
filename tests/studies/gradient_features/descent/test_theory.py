from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.gradient_features.descent.learners import CURVATURE, best_head, descend_head, loss, slope
from assay.studies.gradient_features.descent.theory import (
    best_bound,
    descent_bound,
    drift_envelope,
    first_output_bound,
    generalisation_bound,
    regret_bound,
    second_order_recursion,
    smoothness,
)
from assay.studies.gradient_features.learners import (
    RELU,
    first_step,
    mirrored,
    sampled_gradients,
    stepped,
    symmetric_start,
    train_both,
)
from assay.studies.gradient_features.problem import GaussianMixture, Sample
from assay.studies.gradient_features.theory import loss_slope, simplified_gradient
from assay.training import Seeds, TwoLayer
from assay.training.two_layer import hinge_gradients

SEEDS = Seeds((0, 1), dtype=torch.float64)


def features() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    phi = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    labels = torch.where(phi[:, 0] + 0.8 * torch.randn(60, generator=generator, dtype=torch.float64) > 0, 1.0, -1.0)
    return phi, labels.double()


@pytest.mark.parametrize("kind", CURVATURE)
def test_descent_with_rate_one_over_smoothness_stays_below_its_bound(kind):
    phi, labels = features()
    rate = 1 / smoothness(phi, CURVATURE[kind])
    target = best_head(phi, labels, kind, penalty=1e-6)
    least = loss(phi @ target, labels, kind)
    for step, head in descend_head(phi, labels, kind, rate, 50):
        gap = float(loss(phi @ head, labels, kind) - least)
        assert gap <= descent_bound(torch.zeros(5).double(), target, rate, step)


@pytest.mark.parametrize("kind", CURVATURE)
def test_the_best_head_has_no_gradient_and_slopes_are_autograds(kind):
    phi, labels = features()
    head = best_head(phi, labels, kind, penalty=0.01)
    outputs = (phi @ head).requires_grad_(True)
    loss(outputs, labels, kind).backward()
    assert torch.allclose(outputs.grad * len(labels), slope(outputs.detach(), labels, kind))
    assert float((phi.T @ outputs.grad + 0.01 * head).abs().max()) < 1e-8


@given(rho=st.floats(0.01, 0.5), beta=st.floats(-1, 1), h0=st.floats(-1, 1), h1=st.floats(-1, 1))
@settings(max_examples=30, deadline=None)
def test_the_recursion_has_its_closed_form(rho, beta, h0, h1):
    before, now = h0, h1
    for _ in range(8):
        before, now = now, 2 * now - (1 - rho**2) * before + beta
    assert second_order_recursion(rho, beta, (h0, h1), 9) == pytest.approx(now, rel=1e-6, abs=1e-6)


def test_the_envelope_grows_and_starts_at_rest():
    outputs, reach = torch.tensor([0.0, 1.0]), torch.tensor([2.0, 2.0])
    allowed, drift = drift_envelope(outputs, reach, input_norm=3.0, rate=0.1, steps=3)
    assert [len(allowed), len(drift)] == [4, 4]
    assert drift[1].tolist() == pytest.approx([0.0, 0.3])
    assert allowed[1].tolist() == pytest.approx([0.2, 1.2])
    assert bool((drift[3] > drift[2]).all())


def test_the_generalisation_bound_by_hand():
    bound = generalisation_bound(2.0, torch.tensor([[3.0, 0.0]]), torch.tensor([4.0]), 1.0, 100)
    assert bound == pytest.approx(2 * 2 * 5 / 10)


@given(rate=st.floats(0.01, 2), start=st.floats(-3, 3), scale=st.floats(-5, 5), seed=st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_online_descent_on_hinge_losses_has_little_regret(rate, start, scale, seed):
    """A new hinge loss of one sample at every step, against any fixed θ*, good or bad."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    labels = torch.randn(30, generator=generator).sign().double()
    target = scale * torch.randn(4, generator=generator, dtype=torch.float64)
    theta = first = torch.full((4,), start, dtype=torch.float64)
    regret, slopes = 0.0, []
    for x, y in zip(inputs, labels, strict=True):
        own, other = (max(0.0, 1 - float(y * (x @ point))) for point in (theta, target))
        slopes.append(-y * x if own > 0 else torch.zeros_like(x))
        regret += (own - other) / 30
        theta = theta - rate * slopes[-1]
    assert regret <= regret_bound(first, target, torch.stack(slopes), rate) + 1e-12


def test_the_regret_bound_is_sharp_up_to_half_a_step_and_needs_convexity():
    """f_t(θ) = −θ from 0 against θ* = ηT: the mean regret is η(T + 1)/2, and the bound η(T/2 + 1)."""
    rate, steps = 0.2, 25
    bound = regret_bound(torch.zeros(1), torch.tensor([rate * steps]), -torch.ones(steps, 1), rate)
    regret = rate * steps - rate * (steps - 1) / 2
    assert bound - regret == pytest.approx(rate / 2, rel=1e-5)
    # A ramp is flat at the start: descent stays at the loss 1, while θ* = −2 has the loss 0.
    assert regret_bound(torch.zeros(1), torch.tensor([-2.0]), torch.zeros(steps, 1), rate) < 1


def test_training_both_layers_has_little_regret_against_any_head():
    """With W_t given, the loss of step t is convex in the outputs, so that a fixed head is a θ* for all steps."""
    problem, rate, steps = GaussianMixture.xor(8, 1.0), 0.05, 20
    start = symmetric_start(SEEDS, 16, 8, 2.0)
    net = stepped(start, sampled_gradients(start, problem.sample(SEEDS, "first step", 500)), knot=1.0)
    batches = [problem.sample(SEEDS, f"batch {step}", 100) for step in range(1, steps + 1)]
    targets = {"none": torch.zeros_like(net.output), "random": SEEDS.normal("head", 64)}
    targets["trained"] = list(train_both(net, lambda step: batches[step - 1], rate, steps))[-1][1].output
    for target in targets.values():
        regret, slopes = torch.zeros(2).double(), []
        for step, now in train_both(net, lambda step: batches[step - 1], rate, steps):
            if step < steps:
                regret += (_hinge(now, batches[step]) - _hinge(_with(now, target), batches[step])) / steps
                slopes.append(hinge_gradients(now, batches[step].inputs, batches[step].labels, RELU).output)
        for seed in range(2):
            found = torch.stack([slope[seed] for slope in slopes])
            assert float(regret[seed]) <= regret_bound(net.output[seed], target[seed], found, rate)


def _hinge(net: TwoLayer, sample: Sample) -> torch.Tensor:
    return (1 - sample.labels * net(sample.inputs, RELU)).clamp(min=0).mean(1)


def _with(net: TwoLayer, output: torch.Tensor) -> TwoLayer:
    return TwoLayer(net.weights, net.biases, output)


@given(threshold=st.floats(0.01, 10), rate=st.floats(0.01, 10))
@settings(max_examples=20, deadline=None)
def test_outputs_after_the_first_step_stay_below_their_bound(threshold, rate):
    sample = GaussianMixture.xor(6, 1.0).sample(SEEDS, "train", 80)
    start = symmetric_start(SEEDS, 12, 6, threshold)
    net = _stepped_with_head(start, sample, rate)
    for seed in range(2):
        norm = float(sample.inputs[seed].norm(dim=-1).mean())
        level = threshold / math.sqrt(6)  # a start for standard normal weights has been scaled
        bound = first_output_bound(start.weights[seed], level, norm, rate, loss_slope("hinge"))
        assert 0 < float(net.output[seed].abs().max()) <= bound


def test_the_bound_of_first_outputs_is_reached_by_inputs_along_a_neuron():
    weights = torch.tensor([[[3.0, 4.0]]], dtype=torch.float64)
    start = mirrored(weights, torch.tensor([[0.5]]).double(), torch.ones(1, 1).double())
    sample = Sample(-2 * weights, torch.ones(1, 1).double(), torch.zeros(1, 1))
    net = _stepped_with_head(start, sample, rate=0.1)
    # The mirrored neuron (−w, −b̃) sees ⟨−w, −2w⟩ + b̃ = 50.5.
    assert float(net.output.abs().max()) == pytest.approx(5.05)
    assert first_output_bound(weights[0], 0.5, 10.0, 0.1, loss_slope("hinge")) == pytest.approx(5.05)


def _stepped_with_head(start: TwoLayer, sample: Sample, rate: float) -> TwoLayer:
    """The first step on both layers, the outputs' gradient by its definition."""
    head = (RELU.value(start.preactivation(sample.inputs)) * sample.labels.unsqueeze(-1)).mean(1)
    gradients = simplified_gradient(sample.inputs, sample.labels, start.weights, -start.biases)
    return first_step(start, gradients, torch.full((len(head),), rate).double(), head)


def test_descent_stays_below_the_bound_of_every_comparator_and_one_is_the_best():
    # A quadratic of curvatures 1 and 1/100 around a*, descended from 0 at rate 1.
    curvature, target = torch.tensor([1.0, 0.01]), torch.tensor([1.0, 3.0])
    heads = [target * share for share in (0.0, 0.5, 1.0)] + [torch.tensor([1.0, 0.0])]
    losses = [float((curvature * (head - target).square()).sum() / 2) for head in heads]
    sizes = [float(head.square().sum()) for head in heads]
    head = torch.zeros(2)
    for step in range(1, 50):
        head = head - curvature * (head - target)
        loss = float((curvature * (head - target).square()).sum() / 2)
        bound = best_bound(losses, sizes, 1.0, step)
        assert loss <= bound <= losses[0]
        assert bound == min(best_bound([a], [b], 1.0, step) for a, b in zip(losses, sizes, strict=True))
    assert best_bound(losses, sizes, 1.0, 2) < best_bound(losses[2:3], sizes[2:3], 1.0, 2), "not always the minimiser"
