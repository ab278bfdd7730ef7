import math
from dataclasses import replace

import pytest
import torch

from assay.methods.neuron_sets import neuron_sets
from assay.studies.imbalanced_contrastive import theory
from assay.studies.imbalanced_contrastive.learners import Cells, Contrastive, infonce_step, random_start
from assay.studies.imbalanced_contrastive.problem import TokenPairs
from assay.training import Seeds

SEEDS = Seeds((0,), dtype=torch.float64)


def test_sets_are_nested_and_lucky_ones_disjoint():
    alpha = torch.randn(20_000, 12, generator=torch.Generator().manual_seed(0))
    ordinary, lucky = theory.ordinary_sets(alpha, 1.0, 0.1), theory.lucky_sets(alpha, 1.0, 0.1)
    assert lucky.any()
    assert (lucky <= ordinary).all()
    members = lucky.any(-1)
    assert (ordinary[members].sum(-1) == 1).all()
    torch.testing.assert_close(theory.lucky_sets(7 * alpha, 1.0, 0.1), lucky)


@pytest.mark.parametrize(("d", "r"), [(9, 1.0), (30, 0.7), (30, 1.0)])
def test_beta_probabilities_are_the_shares_of_random_neurons(d, r):
    n = 40_000
    alpha = torch.randn(n, d, generator=torch.Generator().manual_seed(1))
    exact = neuron_sets(d, r)
    shares = theory.ordinary_sets(alpha, r, 0.1).double().mean(0)
    spread = math.sqrt(exact.ordinary * (1 - exact.ordinary) / n)
    assert (shares - exact.ordinary).abs().max() < 5 * spread
    count = theory.ordinary_sets(alpha, r, 0.1).double().sum(1).mean()
    assert float(count) == pytest.approx(exact.features_per_neuron, rel=0.05)


def test_the_lucky_probability_is_the_share_of_random_neurons():
    lucky = theory.lucky_sets(torch.randn(300_000, 30, generator=torch.Generator().manual_seed(2)), 1.0, 0.1)
    exact = neuron_sets(30, 1.0)
    assert exact.dominant == pytest.approx(0.0042, abs=1e-4)
    assert exact.ordinary == pytest.approx(0.0107, abs=1e-4)
    assert float(lucky.double().mean()) == pytest.approx(exact.lucky, rel=0.03)
    assert float(lucky.double().mean()) / exact.independent == pytest.approx(1.2, abs=0.15)


def test_logits_approach_uniform_quadratically_in_the_weights():
    problem, run = TokenPairs(dim=20), Contrastive(1, 16, 0.1, 4.0, None)
    views = run.attended(run.pairs(problem, Cells([0.3], [0.05], [0.0]), SEEDS, "logits").next(16))
    start = random_start(problem, 1, SEEDS, width=24, scale=1e-3)
    apart = [
        (infonce_step(replace(start, weights=s * start.weights), *views, 4.0).softmax - 1 / 16).abs().max()
        for s in (1, 0.5)
    ]
    assert float(apart[0] / apart[1]) == pytest.approx(4, rel=1e-3)


def test_expected_similarity_is_the_sum_over_neurons_and_features():
    problem = TokenPairs(2, 1, 5, 2, 0.5)
    run, start = Contrastive(1, 2, 0.1, 1.0, None), random_start(problem, 1, SEEDS, width=4, scale=1.0)
    first, second = run.attended(run.pairs(problem, Cells([0.5], [0.2], [0.0]), SEEDS, "similar").next(60_000))
    products = (start(first) * start(second)).sum(-1)[0, 0]
    expected = theory.positive_similarity(start.weights[0, 0, :, :3], theory.pair_correlations(problem, 0.5)[0])
    assert abs(float(products.mean() - expected)) < 4 * float(products.std()) / math.sqrt(60_000)


def test_the_energy_of_a_feature_is_that_of_its_own_neurons():
    alpha = torch.tensor([[1.0, 2.0], [-3.0, 4.0]])
    members = torch.tensor([[True, True], [True, False]])
    assert theory.set_energies(alpha, members).tolist() == [10.0, 4.0]


def test_printed_rates_have_ratio_epsilon_over_d():
    rare, other = theory.printed_rates(0.3, 0.125, 8, 0.02, 1.0)
    assert other / rare == pytest.approx(0.3 / 8)
