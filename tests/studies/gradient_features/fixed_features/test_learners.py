from __future__ import annotations

import math

import pytest
import torch

from assay.studies.gradient_features.fixed_features.learners import (
    KERNEL_PENALTIES,
    PENALTIES,
    exact_kernels,
    kernel_ridge,
    ntk,
    polynomial,
    random_fourier,
    random_relu,
    rbf,
    ridge_head,
    score,
)
from assay.studies.gradient_features.problem import Sample
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


def test_scores_of_answers_and_of_numbers():
    outputs = torch.tensor([1.0, -2.0, 3.0])
    assert float(score(outputs, torch.tensor([1.0, 1.0, 1.0]), False)) == pytest.approx(2 / 3)
    assert float(score(outputs, torch.zeros(3), True)) == pytest.approx(-14 / 3)
