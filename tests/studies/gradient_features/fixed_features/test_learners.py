from __future__ import annotations

import math

import pytest
import torch

from assay.studies.gradient_features.fixed_features.learners import (
    KERNEL_PENALTIES,
    PENALTIES,
    exact_kernels,
    feature_kernel_ridge,
    kernel_ridge,
    ntk,
    outermost,
    polynomial,
    random_fourier,
    random_relu,
    random_tangent,
    rbf,
    ridge_head,
    score,
    train_both_layers,
)
from assay.studies.gradient_features.learners import sampled_gradients, stepped, symmetric_start
from assay.studies.gradient_features.problem import GaussianMixture, Sample
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


def linear_task(noise: float = 0.1) -> tuple[Sample, Sample]:
    parts = []
    for name in ("train", "test"):
        inputs = SEEDS.normal(name, 120, 4)
        labels = inputs @ torch.tensor([1.0, -2.0, 0.5, 0.0]).double() + 3 + noise * SEEDS.normal(f"{name} noise", 120)
        parts.append(Sample(inputs, labels, torch.zeros(2, 120, dtype=torch.long)))
    return parts[0], parts[1]


def test_a_head_is_the_ridge_solution_at_the_chosen_penalty():
    train, test = linear_task()
    fitted = ridge_head(lambda seed, x: x, train, test.inputs, regression=True)
    for seed, penalty in enumerate(fitted.penalties.tolist()):
        assert penalty in PENALTIES
        x = train.inputs[seed] - train.inputs[seed].mean(0)
        y = train.labels[seed] - train.labels[seed].mean()
        level = x.square().mean()
        head = torch.linalg.solve(x.T @ x / 120 + penalty * level * torch.eye(4).double(), x.T @ y / 120)
        expected = (test.inputs[seed] - train.inputs[seed].mean(0)) @ head + train.labels[seed].mean()
        assert torch.allclose(fitted.outputs[seed], expected, atol=1e-8)
    assert float((fitted.outputs - test.labels).square().mean()) < 0.05


def test_a_linear_kernel_does_what_a_linear_head_does():
    train, test = linear_task()
    fitted = kernel_ridge([polynomial(1, 4, 1.0)], train, test.inputs, regression=True)
    assert float((fitted.outputs - test.labels).square().mean()) < 0.05
    assert set(fitted.penalties.tolist()) <= set(KERNEL_PENALTIES)


def test_the_held_out_samples_choose_the_kernel():
    inputs = SEEDS.normal("train", 200, 3)
    train = Sample(inputs, (inputs[..., 0] * inputs[..., 1]).sign(), torch.zeros(2, 200, dtype=torch.long))
    test = SEEDS.normal("test", 400, 3)
    fitted = kernel_ridge([polynomial(1, 3), polynomial(2, 3)], train, test)
    right = (fitted.outputs * test[..., 0] * test[..., 1] > 0).double().mean()
    assert float(right) > 0.8  # chance for the linear kernel, whose labels it cannot see


def test_the_tangent_kernel_is_the_limit_of_wide_networks():
    """E[1{⟨w,x⟩>0}1{⟨w,z⟩>0}⟨x,z⟩ + σ(⟨w,x⟩)σ(⟨w,z⟩)] over 400,000 neurons."""
    x, z = SEEDS.normal("x", 3, 4)[0], SEEDS.normal("z", 2, 4)[0]
    weights = torch.randn(400_000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    left, right = x @ weights.T, z @ weights.T
    gates = (left > 0).double() @ (right > 0).double().T * (x @ z.T)
    wide = (gates + left.clamp(min=0) @ right.clamp(min=0).T) / len(weights)
    assert torch.allclose(ntk(x, z), wide, atol=0.05)


def test_kernels_are_symmetric_and_positive():
    x = SEEDS.normal("x", 12, 5)[0]
    for kernels in exact_kernels(5, math.sqrt(5)).values():
        for kernel in kernels:
            gram = kernel(x, x)
            assert torch.allclose(gram, gram.T, atol=1e-10)
            assert float(torch.linalg.eigvalsh(gram)[0]) > -1e-8
    assert float(rbf(1.0)(x[:1], x[:1])) == pytest.approx(1)


def test_random_features_belong_to_their_seed():
    alone, together = Seeds((1,)), Seeds((0, 1))
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    for make in (lambda s: random_relu(s, "f", 7, 3, 0.5, 2.0), lambda s: random_fourier(s, "f", 7, 3, 2.0)):
        assert torch.equal(make(alone)(0, x), make(together)(1, x))
    assert float(random_fourier(alone, "f", 50, 3, 1.0)(0, x).abs().max()) <= 1


def test_tangent_features_are_the_gradient_of_a_network():
    features = random_tangent(SEEDS, "f", 3 * 5, 4, 2.0)
    x = SEEDS.normal("x", 6, 4)[0]
    weights = (SEEDS.normal("f", 3, 4)[0] / 2).requires_grad_(True)
    outputs = torch.ones(3, dtype=torch.float64, requires_grad=True)
    for row, found in zip(x, features(0, x), strict=True):
        value = (outputs * torch.relu(weights @ row)).sum()
        slopes = torch.autograd.grad(value, (weights, outputs))
        assert torch.allclose(found, torch.cat([slopes[0].flatten() / 2, slopes[1]]), atol=1e-10)


def test_a_head_by_inner_products_is_kernel_regression_on_the_features():
    train, test = linear_task(noise=0.0)
    labels = Sample(train.inputs, train.labels.sign(), train.components)
    features = random_relu(SEEDS, "f", 300, 4, 0.0, 2.0)
    fitted = feature_kernel_ridge(features, labels, test.inputs)
    phi = features(1, train.inputs[1])
    gram = phi @ phi.T / 300
    penalty = float(fitted.penalties[1]) * float(gram.diagonal().mean())
    mean = labels.labels[1].mean()
    dual = torch.linalg.solve(gram + penalty * torch.eye(120).double(), labels.labels[1] - mean)
    expected = features(1, test.inputs[1]) @ phi.T / 300 @ dual + mean
    assert torch.allclose(fitted.outputs[1], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("scores", "edge"),
    [([3.0, 2.0, 1.0], 1), ([1.0, 2.0, 3.0], 1), ([1.0, 3.0, 2.0], 0), ([2.0, 2.0, 1.0], 0), ([1.0, 2.0, 2.0], 0)],
)
def test_an_edge_counts_where_it_is_the_only_best(scores, edge):
    assert outermost(torch.tensor(scores)) == edge


def test_the_grids_reach_so_far_that_both_ends_are_limits():
    """At the last penalty a head has shrunk to its intercept, whatever the labels."""
    train, _ = linear_task()
    phi = train.inputs[0] - train.inputs[0].mean(0)
    level = float(phi.square().mean())
    head = torch.linalg.solve(phi.T @ phi / 120 + PENALTIES[-1] * level * torch.eye(4).double(), phi.T @ phi / 120)
    assert float(head.abs().max()) < 1e-3
    assert PENALTIES[-1] >= 1e4
    assert KERNEL_PENALTIES[-1] >= 1e5


def test_both_layers_learn_the_xor_mixture_and_seeds_do_not_mix():
    problem = GaussianMixture.xor(16, 0.5)

    def fit(seeds: Seeds):
        start = symmetric_start(seeds, 16, 16, 2.0)
        train, test = (problem.sample(seeds, name, 300) for name in ("train", "test"))
        net = stepped(start, sampled_gradients(start, train), knot=2.0)
        return train_both_layers(seeds, net, train, test.inputs, rates=(1e-6, 0.1), steps=20, batch=100), test

    fitted, test = fit(Seeds((0, 1)))
    assert float((fitted.outputs * test.labels > 0).double().mean()) > 0.97
    alone, _ = fit(Seeds((1,)))
    assert torch.allclose(alone.outputs[0], fitted.outputs[1], atol=1e-4)
    assert fitted.scores.tolist() > [0.9, 0.9]


def test_scores_of_answers_and_of_numbers():
    outputs = torch.tensor([1.0, -2.0, 3.0])
    assert float(score(outputs, torch.tensor([1.0, 1.0, 1.0]), False)) == pytest.approx(2 / 3)
    assert float(score(outputs, torch.zeros(3), True)) == pytest.approx(-14 / 3)
