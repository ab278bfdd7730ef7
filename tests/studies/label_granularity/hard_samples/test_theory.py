from __future__ import annotations

import math

import pytest
import torch

from assay.studies.label_granularity.hard_samples import theory
from assay.studies.label_granularity.learners import Initialisation, Training, errors, residual_for
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.studies.label_granularity.theory import critical_subclasses, firing
from assay.training import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
INIT = Initialisation(8000)


def test_the_hard_rule_predicts_every_sample_without_noise():
    problem = HierarchicalPatches(dim=24, subclasses=4, noise=0.0, strong_noise=0.0, distractors=3)
    start = INIT.draw(SEEDS, 2, problem).network
    *_, (_, _, update) = Training(problem).run(start, SEEDS, 20, residual_for("coarse", problem))
    hard = problem.sample(SEEDS, "hard", 30, hard=True)
    scores = update.network.outputs(hard.patches)
    classes = (hard.superclass, 1 - hard.superclass)
    own, other = (scores.gather(-1, index.view(1, -1, 1).expand(3, -1, 1)).squeeze(-1) for index in classes)
    rule = theory.hard_rule(hard, update.network.projections(problem.features), update.network.biases)
    assert float((rule == (own <= other)).double().mean()) > 0.99
    assert 0.1 < float(rule.double().mean()) < 0.9  # both outcomes occur


def test_the_report_of_the_rule_counts_the_better_constant():
    problem = HierarchicalPatches(32, 16, 3, 4, noise=0.001, distractors=4, faint=(0.9, 1.0))
    start = Initialisation(1500).draw(SEEDS, 2, problem).network
    *_, (_, _, update) = Training(problem).run(start, SEEDS, 10, residual_for("coarse", problem))
    hard = problem.sample(SEEDS, "hard", 20, hard=True)
    report = theory.rule_report(update.network, hard, problem)
    share = errors(update.network.outputs(hard.patches), hard.superclass)
    torch.testing.assert_close(report["constant_agreement"], torch.maximum(share, 1 - share))
    assert bool((report["constant_agreement"] >= 0.5).all())
    assert bool((report["rule_agreement"] >= 0.9).all())


def test_untrained_neurons_on_strong_noise():
    """200,000 neurons: the standard error of the mean is below 1 %."""
    for norm in (1.0, 5.0):
        draws = torch.randn(200_000, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * norm
        mean = float(torch.relu(draws - 2.0).mean())
        assert theory.untrained_response(norm, 2.0) == pytest.approx(mean, rel=0.05)
    assert theory.untrained_response(0.16, 3.0) < 1e-70
    assert theory.untrained_response(0.0, 3.0) == 0


def test_scales_of_strong_noise():
    low, high = theory.strong_noise_scales(8, 6)
    assert low == pytest.approx(0.75)
    assert high == pytest.approx(6 / math.sqrt(2 * math.log(16)))


def test_the_counted_rule_foretells_the_trained_network():
    problem = HierarchicalPatches(dim=64, subclasses=6, noise=1e-6, strong_noise=0.0, distractors=2)
    start = INIT.draw(SEEDS, 2, problem).network
    hard = problem.sample(SEEDS, "hard", 30, hard=True)
    foretold = theory.counted_rule(hard, *firing(start, problem, "coarse"), 0.05)
    *_, (_, _, update) = Training(problem).run(start, SEEDS, 100, residual_for("coarse", problem))
    rule = theory.hard_rule(hard, update.network.projections(problem.features), update.network.biases)
    assert float((foretold == rule).double().mean()) > 0.85
    assert 0.1 < float(rule.double().mean()) < 0.9  # both outcomes occur


def test_the_counted_rule_turns_at_k_star_where_counts_are_equal():
    """Equal numbers of neurons, strengths all ½: an error exactly from k* = s*(1 − ρ)/(s†(½ − ρ)) on."""
    for k in (4, 6, 7, 10):
        problem = HierarchicalPatches(dim=24, subclasses=k, distractors=2, faint=(0.5, 0.5))
        hard = problem.sample(SEEDS, "hard", 2, hard=True)
        common, subclass = torch.full((3, 2), 5.0), torch.full((3, 2, k), 5.0)
        for rho in (0.0, 0.05):
            wrong = theory.counted_rule(hard, common, subclass, rho)
            assert bool((wrong == (k >= critical_subclasses(problem, rho))).all()), (k, rho)
