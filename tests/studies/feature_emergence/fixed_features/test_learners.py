"""The linearised network against the network and autograd, and both comparators on an easy task."""

from dataclasses import replace

import pytest
import torch

from assay.probes.directions import cosines
from assay.studies.feature_emergence.fixed_features.learners import ambient_cosines, train_linearised
from assay.studies.feature_emergence.learners import PLAIN, Fit, Stages, features_of, initialise, smooth, train_head
from assay.studies.feature_emergence.problem import PatternProblem, label_counts
from assay.training.seeds import Seeds
from assay.training.two_layer import Linearised, TwoLayer, accuracies

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = PatternProblem(40, 30, 5, label_counts("parity", 5))
STAGES = Stages(5, 12, PROBLEM.class_gap, PROBLEM.scale)


def data(n=600, problem=PROBLEM, seeds=SEEDS):
    return problem.sample(seeds, "train", n)


def test_linearised_model_is_the_network_to_first_order():
    x, _ = data(50)
    start = initialise(SEEDS, STAGES, 30)
    start = replace(start, biases=start.biases + 0.3)
    moves = TwoLayer(
        *(
            1e-6 * SEEDS.normal(name, *part.shape[1:])
            for name, part in (("u", start.weights), ("v", start.biases), ("c", start.output))
        )
    )
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


@pytest.mark.parametrize("dim", [60, 240])
def test_random_features_have_the_cosines_of_gaussian_vectors_in_the_input_space(dim):
    stages = replace(STAGES, half_width=2000)
    problem = replace(PROBLEM, dim=dim)
    found = ambient_cosines(initialise(SEEDS, stages, 30), problem, SEEDS)
    assert torch.equal(found[:, :2000], found[:, 2000:])  # mirrored neurons share their weights
    # A Gaussian direction has mean square cosine 1/d; 4000 of them leave 2 % of it to chance.
    assert float(found.square().mean()) == pytest.approx(1 / dim, rel=0.1)


def test_without_dimensions_beside_the_patterns_cosines_are_those_of_the_weights():
    problem = replace(PROBLEM, basis="ambient")
    start = initialise(SEEDS, STAGES, problem.features)
    assert torch.equal(ambient_cosines(start, problem, SEEDS), cosines(start.weights, problem.truth(SEEDS))[..., 0])
