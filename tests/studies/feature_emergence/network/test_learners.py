"""Stage three: its bounds, and that the basis does not matter."""

from dataclasses import replace

import torch

from assay.studies.feature_emergence.learners import PLAIN, Fit, Stages, emerge, initialise
from assay.studies.feature_emergence.network import theory
from assay.studies.feature_emergence.network.learners import train_network
from assay.studies.feature_emergence.problem import PatternProblem, label_counts
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = PatternProblem(40, 30, 5, label_counts("parity", 5))
STAGES = Stages(5, 12, PROBLEM.class_gap, PROBLEM.scale)


def data(n=600, problem=PROBLEM, seeds=SEEDS):
    return problem.sample(seeds, "train", n)


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
