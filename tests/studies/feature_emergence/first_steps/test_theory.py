"""The first two steps against their predictions."""

from dataclasses import replace

import pytest
import torch

from assay.probes.directions import cosines
from assay.studies.feature_emergence.first_steps import theory
from assay.studies.feature_emergence.first_steps.theory import (
    component_reports,
    gradient_components,
    mean_pairwise_cosine,
    relevant_over_background,
    shuffled_cosine_scale,
    tangents,
)
from assay.studies.feature_emergence.learners import Stages, class_weights, emerge, initialise, smooth
from assay.studies.feature_emergence.problem import PatternProblem, label_counts
from assay.training.seeds import Seeds
from assay.training.two_layer import hinge_gradients

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = PatternProblem(40, 30, 5, label_counts("parity", 5))
STAGES = Stages(5, 12, PROBLEM.class_gap, PROBLEM.scale)


def data(n=600, problem=PROBLEM, seeds=SEEDS):
    return problem.sample(seeds, "train", n)


@pytest.mark.parametrize("n", [4000, 16_000])
def test_step_two_neurons_are_collinear_at_the_predicted_angle(n):
    seeds = Seeds(tuple(range(6)), dtype=torch.float64)
    x, y = data(n, seeds=seeds)
    two = emerge(initialise(seeds, STAGES, 30), x, y, STAGES)[1]
    assert 1 - mean_pairwise_cosine(two.weights).min() < 1e-6
    measured = tangents(two.weights, PROBLEM.truth(seeds)).square().mean().sqrt()
    assert float(measured) == pytest.approx(theory.expected_tangent(5, 30, n, 0.5, 0.25), rel=0.15)
    empirical = (x * y.unsqueeze(-1) * class_weights(y).unsqueeze(-1)).mean(1, keepdim=True)
    assert float(cosines(two.weights, empirical).abs().min()) > 1 - 1e-6


def test_gradient_components_meet_the_prediction():
    x, y = data(20_000)
    net = initialise(SEEDS, STAGES, 30)
    relevant = PROBLEM.relevant_set(SEEDS)
    components = gradient_components(net, x, y, smooth(STAGES.smoothing))
    gradient = hinge_gradients(net, x, y, smooth(STAGES.smoothing), class_weights(y))
    assert torch.allclose(gradient.weights, -net.output.unsqueeze(-1) * components, rtol=1e-8, atol=1e-12)
    one = emerge(net, x, y, STAGES)[0]
    first, second = component_reports(PROBLEM, STAGES, (net, one), x, y, relevant)
    for report in (first, second):
        assert torch.allclose(report.signal_ratio, torch.ones(2, dtype=torch.float64), atol=0.06)
        assert (report.background_over_noise < 1.2).all()
    # Step one is noisier by √κ with 1 ≤ κ ≤ 1/β, and its gates depend on the input; those of step two hardly do.
    assert (first.expected_tangent > second.expected_tangent).all()
    assert (first.expected_tangent < 2 * second.expected_tangent).all()
    assert first.gate_change.min() > 0.1
    assert second.gate_change.max() < 1e-3
    slow = torch.stack([components[s][:, relevant[s]].mean(1) for s in range(2)])
    assert torch.allclose(first.signal, slow)


def test_components_are_those_of_the_balanced_gradient_when_classes_are_not():
    problem = replace(PROBLEM, negative_share=0.8)
    stages = replace(STAGES, gamma=problem.class_gap, scale=problem.scale)
    x, y = data(20_000, problem=problem)
    net = initialise(SEEDS, stages, 30)
    one = emerge(net, x, y, stages)[0]
    for report in component_reports(problem, stages, (net, one), x, y, problem.relevant_set(SEEDS)):
        # Without the weights the ratio would be 4 p₊ p₋ = 0.64.
        assert torch.allclose(report.signal_ratio, torch.ones(2, dtype=torch.float64), atol=0.12)
        assert (report.background_over_noise < 1.2).all()
        assert (report.background_over_noise > 0.5).all()


def test_expected_angle_at_the_default_sizes():
    assert theory.cosine_of_tangent(theory.expected_tangent(5, 100, 50_000, 0.5, 0.25)) == pytest.approx(
        0.99924, abs=1e-5
    )
    assert theory.cosine_of_tangent(theory.expected_tangent(5, 400, 2_000, 0.5, 0.25)) == pytest.approx(
        0.9293, abs=1e-4
    )


def test_typical_initialisation_is_typical():
    q = 0.2 * torch.randn(1000, 95, generator=torch.Generator().manual_seed(0))
    assert theory.typical_initialisation(q, 0.2, 5, 300).double().mean() > 0.98
    assert not theory.typical_initialisation(3 * q, 0.2, 5, 300).any()


def test_error_scales_shrink_with_what_they_should():
    assert theory.gradient_error_scale(5, 400, 300, 0.1, 5.0) < theory.gradient_error_scale(5, 100, 300, 0.1, 5.0)
    assert theory.second_error_scale(1e-9, 4.0, 5, 0.25, 1.0, 5.0, 0.09) < 1e-6


def test_balancing_classes_spreads_their_weights():
    assert theory.class_weight_spread(0.5) == 1.0
    assert theory.class_weight_spread(0.2) == pytest.approx((5 + 1.25) / 4)


@pytest.mark.parametrize("inputs", ["mixture", "uniform"])
def test_shuffled_labels_turn_neurons_as_far_as_the_inputs_covariance_says(inputs):
    problem = replace(PROBLEM, inputs=inputs)
    seeds = Seeds(tuple(range(200)), dtype=torch.float64)
    x, _ = data(300, problem, seeds)
    signs = seeds.draw("signs", lambda g: torch.randint(0, 2, (300,), generator=g) * 2.0 - 1)
    directions = (x * signs.to(x).unsqueeze(-1)).mean(1, keepdim=True)
    measured = cosines(directions, problem.truth(seeds)).square().mean().sqrt()
    # 200 draws of a half-normal cosine leave 5 % of its root mean square to chance.
    assert float(measured) == pytest.approx(shuffled_cosine_scale(problem), rel=0.2)


def test_relevant_over_background_by_hand():
    components = torch.tensor([[[3.0, 4.0, 1.0, 1.0], [3.0, 4.0, -1.0, 1.0]]])
    found = relevant_over_background(components, torch.tensor([[0, 1]]))
    assert float(found[0]) == pytest.approx((12.5) ** 0.5)


@pytest.mark.parametrize(("inputs", "visible"), [("mixture", True), ("uniform", False)])
def test_relevant_patterns_stand_out_of_the_first_gradient_with_structure_alone(inputs, visible):
    problem = replace(PROBLEM, inputs=inputs)
    x, y = data(8000, problem)
    components = gradient_components(initialise(SEEDS, STAGES, 30), x, y, smooth(STAGES.smoothing))
    ratio = relevant_over_background(components, problem.relevant_set(SEEDS))
    assert ((ratio > 10) if visible else (ratio < 2)).all()
