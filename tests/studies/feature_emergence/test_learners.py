"""The stages and heads against autograd, against each other's slow forms, and against symmetries."""

from dataclasses import replace

import pytest
import torch
from scipy.optimize import linprog

from assay.studies.feature_emergence import theory
from assay.studies.feature_emergence.learners import (
    PLAIN,
    Fit,
    Stages,
    class_weights,
    emerge,
    features_of,
    first_step,
    initialise,
    recalls,
    smooth,
)
from assay.studies.feature_emergence.problem import PatternProblem, label_counts
from assay.training.seeds import Seeds
from assay.training.two_layer import accuracies, hinge_gradients

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = PatternProblem(40, 30, 5, label_counts("parity", 5))
STAGES = Stages(5, 12, PROBLEM.class_gap, PROBLEM.scale)


def data(n=600, problem=PROBLEM, seeds=SEEDS):
    return problem.sample(seeds, "train", n)


def test_the_mirrored_network_starts_at_zero():
    net = initialise(SEEDS, STAGES, 30)
    outputs = net(data()[0], PLAIN)
    assert outputs.abs().max() <= 1e-12 * net.output.abs().sum(1).max()


@pytest.mark.parametrize("s", [0.0, 0.09])
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_gradients_equal_autograd(s, weighted):
    x, y = data()
    net = initialise(SEEDS, STAGES, 30)
    net = replace(net, output=net.output + 0.1 * SEEDS.normal("shift", 24))
    weights = class_weights(y) if weighted else None
    leaves = [part.clone().requires_grad_() for part in (net.weights, net.biases, net.output)]
    z = x @ leaves[0].mT + leaves[1].unsqueeze(1)
    outputs = (theory.smoothed(z, s) * leaves[2].unsqueeze(1)).sum(-1)
    hinge = (1 - y * outputs).clamp(min=0)
    (hinge if weights is None else weights * hinge).mean(1).sum().backward()
    got = hinge_gradients(net, x, y, smooth(s), weights)
    for leaf, part in zip(leaves, (got.weights, got.biases, got.output), strict=True):
        assert torch.allclose(leaf.grad, part, rtol=1e-10, atol=1e-12)


def test_after_step_one_the_mirror_images_are_opposite():
    x, y = data()
    net = initialise(SEEDS, STAGES, 30)
    gradient = hinge_gradients(net, x, y, smooth(STAGES.smoothing), class_weights(y))
    one = first_step(net, gradient, STAGES)
    m, eta = STAGES.half_width, STAGES.first_rate
    assert torch.allclose(one.weights[:, m:], -one.weights[:, :m], rtol=1e-10)
    T_a = -gradient.output[:, :m]
    T_b = -gradient.biases[:, :m] / net.output[:, :m]
    assert torch.allclose(one.output[:, :m] + one.output[:, m:], 2 * eta * T_a, rtol=1e-6, atol=1e-14)
    assert torch.allclose(
        one.biases[:, :m] - one.biases[:, m:], 2 * eta * net.output[:, :m] * T_b, rtol=1e-6, atol=1e-14
    )


def test_erasure_leaves_nothing_of_the_old_weights():
    problem = replace(PROBLEM, basis="ambient")
    x, y = data(problem=problem)
    dictionary = problem.dictionary(SEEDS)
    net = initialise(SEEDS, STAGES, 40)
    outside = net.weights - net.weights @ dictionary @ dictionary.mT
    moved = replace(net, weights=net.weights + 3.0 * outside)
    one, other = emerge(net, x, y, STAGES)[0], emerge(moved, x, y, STAGES)[0]
    assert torch.allclose(one.weights, other.weights, rtol=1e-9)
    leftover = one.weights - one.weights @ dictionary @ dictionary.mT
    assert leftover.norm() <= 1e-12 * one.weights.norm()
    kept = emerge(moved, x, y, replace(STAGES, forget=0.5))[0]
    assert (kept.weights - kept.weights @ dictionary @ dictionary.mT).norm() > 0.1 * kept.weights.norm()


def test_permuting_the_patterns_permutes_the_weights():
    x, y = data()
    net = initialise(SEEDS, STAGES, 30)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(3))
    two = emerge(net, x, y, STAGES)[1]
    permuted = emerge(replace(net, weights=net.weights[..., order]), x[..., order], y, STAGES)[1]
    assert torch.allclose(two.weights[..., order], permuted.weights, rtol=1e-9, atol=1e-14)


def test_some_head_on_step_two_features_separates_the_data():
    seeds = Seeds((0,), dtype=torch.float64)
    stages = replace(STAGES, half_width=100)
    x, y = data(4000, seeds=seeds)
    two = emerge(initialise(seeds, stages, 30), x, y, stages)[1]
    margins = (features_of(two)(x)[0] * y[0].unsqueeze(-1)).numpy()[:800]
    answer = linprog([0.0] * 200, A_ub=-margins, b_ub=[-1.0] * 800, bounds=(None, None))
    assert answer.status == 0


def test_head_variants():
    x, y = data(1000)
    one, two = emerge(initialise(SEEDS, STAGES, 30), x, y, STAGES)
    raw = features_of(one)(x)
    assert raw.std(1).max() < 1e-5  # the trap: step-one features are constant next to the biases
    rescaled = features_of(one, "rescaled", like=two)(x)
    assert rescaled.std(1).max() > 1e-3
    standardised = features_of(two, "standardised", inputs=x)(x)
    alive = features_of(two)(x).std(1) > 0
    assert torch.allclose(standardised.std(1)[alive], torch.ones(1, dtype=torch.float64))
    for head, words in (("rescaled", "norms they take"), ("standardised", "inputs"), ("other", "unknown head")):
        with pytest.raises(ValueError, match=words):
            features_of(one, head)


def test_balanced_accuracy_of_a_constant_is_a_half():
    y = torch.tensor([[1.0, -1.0, -1.0, -1.0]])
    plain, balanced = accuracies(lambda x: -torch.ones(x.shape[:2]), torch.zeros(1, 4, 2), y)
    assert plain.tolist() == [0.75]
    assert balanced.tolist() == [0.5]


def test_bad_stages_and_fits_are_refused():
    with pytest.raises(ValueError, match="share"):
        Stages(5, 10, 0.25, 5.0, forget=1.5)
    with pytest.raises(ValueError, match="unknown optimizer"):
        Fit(10, 10, 0.1, optimizer="lion").make(initialise(SEEDS, STAGES, 30))


def test_a_diverged_predictor_has_no_accuracy():
    y = torch.tensor([[1.0, -1.0], [1.0, -1.0]])
    outputs = torch.tensor([[1.0, torch.nan], [1.0, -1.0]])
    plain, balanced = accuracies(lambda x: outputs, torch.zeros(2, 2, 3), y)
    assert plain.isnan().tolist() == [True, False]
    assert balanced[1] == 1.0


def test_decay_spares_the_biases():
    net = initialise(SEEDS, STAGES, 30)
    groups = Fit(10, 10, 0.1, 0.1, "sgd", decay=0.25).make(net).param_groups
    assert [group["weight_decay"] for group in groups] == [0.5, 0.5, 0]
    assert groups[2]["params"][0] is net.biases


def test_recalls_are_the_two_halves_of_balanced_accuracy():
    labels = torch.tensor([[1.0, 1.0, 1.0, -1.0], [1.0, 1.0, 1.0, -1.0]])
    outputs = torch.tensor([[1.0, 0.0, 2.0, -1.0], [1.0, torch.nan, 2.0, -1.0]])
    positive, negative = recalls(lambda x: x, outputs, labels)
    assert positive[0] == pytest.approx(2 / 3)
    assert negative[0] == 1
    assert positive[1].isnan()
    assert negative[1].isnan()
    _, balanced = accuracies(lambda x: x, outputs, labels)
    assert float(balanced[0]) == pytest.approx(float(positive[0] + negative[0]) / 2)
