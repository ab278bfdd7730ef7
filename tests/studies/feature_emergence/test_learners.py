"""The learners against autograd, against each other's slow forms, and against the step-by-step theory."""

from dataclasses import replace

import pytest
import torch
from scipy.optimize import linprog

from assay.probes.directions import cosines
from assay.studies.feature_emergence import theory
from assay.studies.feature_emergence.emergence import (
    component_reports,
    gradient_components,
    mean_pairwise_cosine,
    tangents,
)
from assay.studies.feature_emergence.learners import (
    PLAIN,
    Fit,
    Stages,
    class_weights,
    emerge,
    features_of,
    first_step,
    initialise,
    smooth,
    train_head,
    train_linearised,
    train_network,
    train_relu,
)
from assay.studies.feature_emergence.problem import PatternProblem, label_counts
from assay.training.seeds import Seeds
from assay.training.two_layer import Linearised, TwoLayer, accuracies, hinge_gradients

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


def test_pattern_basis_run_equals_the_ambient_one():
    ambient = replace(PROBLEM, basis="ambient")
    x, y = data()
    z, _ = data(problem=ambient)
    dictionary = ambient.dictionary(SEEDS)
    flat = initialise(SEEDS, STAGES, 30)
    wide = replace(flat, weights=flat.weights @ dictionary.mT)
    fit = Fit(steps=30, batch=100, output_rate=0.5, weight_rate=0.0, every=30)
    results = []
    for net, inputs in ((flat, x), (wide, z)):
        two = emerge(net, inputs, y, STAGES)[1]
        ((_, trained),) = train_network(two, inputs, y, fit, SEEDS)
        results.append((two, trained(inputs, PLAIN)))
    assert torch.allclose(results[0][0].weights @ dictionary.mT, results[1][0].weights, rtol=1e-6, atol=1e-12)
    assert torch.allclose(results[0][1], results[1][1], rtol=1e-6, atol=1e-9)


def test_permuting_the_patterns_permutes_the_weights():
    x, y = data()
    net = initialise(SEEDS, STAGES, 30)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(3))
    two = emerge(net, x, y, STAGES)[1]
    permuted = emerge(replace(net, weights=net.weights[..., order]), x[..., order], y, STAGES)[1]
    assert torch.allclose(two.weights[..., order], permuted.weights, rtol=1e-9, atol=1e-14)


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


def test_linearised_model_is_the_network_to_first_order():
    x, _ = data(50)
    start = initialise(SEEDS, STAGES, 30)
    start = replace(start, biases=start.biases + 0.3)
    moves = TwoLayer(*(1e-6 * SEEDS.normal(name, *part.shape[1:]) for name, part in
                       (("u", start.weights), ("v", start.biases), ("c", start.output))))  # fmt: skip
    moved = TwoLayer(start.weights + moves.weights, start.biases + moves.biases, start.output + moves.output)
    activation = smooth(0.2)
    linear = Linearised(start, moves)(x, activation)
    assert torch.allclose(moved(x, activation) - start(x, activation), linear, atol=1e-9)
    gates, values = Linearised.at(start).gates(x, activation)
    explicit = torch.einsum("sni,snf,sif->sn", gates, x, moves.weights) + (gates * moves.biases.unsqueeze(1)).sum(-1)
    explicit = explicit + (values * moves.output.unsqueeze(1)).sum(-1)
    assert torch.allclose(linear, explicit, rtol=1e-9, atol=1e-15)


def test_linearised_gradient_equals_autograd():
    x, y = data(80)
    start = initialise(SEEDS, STAGES, 30)
    shapes = {"u": start.weights, "v": start.biases, "c": start.output}
    model = Linearised(start, TwoLayer(*(SEEDS.normal(name, *part.shape[1:]) for name, part in shapes.items())))
    leaves = [p.clone().requires_grad_() for p in (model.moves.weights, model.moves.biases, model.moves.output)]
    outputs = Linearised(start, TwoLayer(*leaves))(x, PLAIN)
    (1 - y * outputs).clamp(min=0).mean(1).sum().backward()
    got = model.gradients(x, y, PLAIN)
    for leaf, part in zip(leaves, (got.weights, got.biases, got.output), strict=True):
        assert torch.allclose(leaf.grad, part, rtol=1e-9, atol=1e-12)


def test_stage_three_drift_stays_within_its_bounds():
    x, y = data(2000)
    two = emerge(initialise(SEEDS, STAGES, 30), x, y, STAGES)[1]
    eta, steps = 0.05, 40
    fit = Fit(steps, 200, eta, eta, "sgd", every=1)
    w2, a2 = float(two.weights.norm(dim=-1).max()), float(two.output.abs().max())
    for step, net in train_network(two, x, y, fit, SEEDS):
        outputs, weights, biases = theory.stage_three_drift(eta, 0.0, step, w2, a2)
        assert float(net.output.abs().max()) <= outputs
        assert float((net.weights - two.weights).norm(dim=-1).max()) <= weights
        assert float((net.biases - two.biases).abs().max()) <= biases


def test_some_head_on_step_two_features_separates_the_data():
    seeds = Seeds((0,), dtype=torch.float64)
    stages = replace(STAGES, half_width=100)
    x, y = data(4000, seeds=seeds)
    two = emerge(initialise(seeds, stages, 30), x, y, stages)[1]
    margins = (features_of(two)(x)[0] * y[0].unsqueeze(-1)).numpy()[:800]
    answer = linprog([0.0] * 200, A_ub=-margins, b_ub=[-1.0] * 800, bounds=(None, None))
    assert answer.status == 0


def test_comparators_learn_a_threshold_and_report_along_the_way():
    problem = PatternProblem(20, 12, 3, label_counts("threshold", 3), "uniform")
    seeds = Seeds((0, 1))
    x, y = problem.sample(seeds, "train", 2000)
    start = initialise(seeds, Stages(3, 40, 0.25, problem.scale), 12)
    fit = Fit(150, 200, 0.05, 0.05, every=100, cool=True)
    for runs in (train_linearised(start, x, y, fit, seeds), train_head(features_of(start), x, y, fit, seeds)):
        steps, predictors = zip(*runs, strict=True)
        assert steps == (100, 150)
        assert accuracies(predictors[-1], x, y)[0].min() > 0.8


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


def test_relu_training_lowers_the_error():
    x, y = data(400)
    runs = list(train_relu((x, y), (x, y), SEEDS, width=50, epochs=(0, 15), batch=50))
    assert [run.epoch for run in runs] == [0, 15]
    assert (runs[1].test_accuracy > runs[0].test_accuracy + 0.2).all()


def test_bad_stages_and_fits_are_refused():
    with pytest.raises(ValueError, match="share"):
        Stages(5, 10, 0.25, 5.0, forget=1.5)
    with pytest.raises(ValueError, match="unknown optimizer"):
        Fit(10, 10, 0.1, optimizer="lion").make(initialise(SEEDS, STAGES, 30))


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


def test_theory_rate_of_stage_three():
    assert theory.third_stage_rate(5, 300, 600) == pytest.approx(0.00622, rel=1e-2)
    assert theory.class_weight_spread(0.5) == 1.0
    assert theory.class_weight_spread(0.2) == pytest.approx((5 + 1.25) / 4)
