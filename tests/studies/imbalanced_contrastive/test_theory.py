import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.imbalanced_contrastive import mechanism, theory
from assay.studies.imbalanced_contrastive.learners import Cells, Contrastive, infonce_step, random_start
from assay.studies.imbalanced_contrastive.problem import TokenPairs
from assay.studies.imbalanced_contrastive.readout import read_out
from assay.training.seeds import Seeds

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
    exact = theory.neuron_sets(d, r)
    shares = theory.ordinary_sets(alpha, r, 0.1).double().mean(0)
    spread = math.sqrt(exact.ordinary * (1 - exact.ordinary) / n)
    assert (shares - exact.ordinary).abs().max() < 5 * spread
    count = theory.ordinary_sets(alpha, r, 0.1).double().sum(1).mean()
    assert float(count) == pytest.approx(exact.features_per_neuron, rel=0.05)


def test_the_lucky_probability_is_the_share_of_random_neurons():
    lucky = theory.lucky_sets(torch.randn(300_000, 30, generator=torch.Generator().manual_seed(2)), 1.0, 0.1)
    exact = theory.neuron_sets(30, 1.0)
    assert exact.dominant == pytest.approx(0.0042, abs=1e-4)
    assert exact.ordinary == pytest.approx(0.0107, abs=1e-4)
    assert float(lucky.double().mean()) == pytest.approx(exact.lucky, rel=0.03)
    assert float(lucky.double().mean()) / exact.independent == pytest.approx(1.2, abs=0.15)


def test_the_pseudo_loss_is_tau_times_the_loss_convex_and_obeys_its_regret():
    problem = TokenPairs(dim=12)
    start = random_start(problem, 1, SEEDS, width=12, scale=0.2)
    start = replace(start, biases=0.2 * torch.linalg.vector_norm(start.weights, dim=-1))
    found = mechanism.regret_share(problem, SEEDS, start, Contrastive(8, 16, 0.1, 4.0, None), 0.5)
    assert found["value"] < 1e-12
    assert found["slope"] < 1e-12
    assert found["bend"] <= 1e-12
    assert found["regret"] <= 1


@given(weight=st.floats(0, 1), seed=st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_the_pseudo_loss_lies_below_its_chords(weight, seed):
    g = torch.Generator().manual_seed(seed)
    w, a, b, x, y = (
        torch.randn(*s, generator=g, dtype=torch.float64) for s in ((4, 6), (4, 6), (4, 6), (8, 1, 6), (8, 4))
    )
    frozen = theory.Frozen.at(w, torch.full((4,), 0.3, dtype=torch.float64), x, 3)
    value = lambda theta: float(theory.pseudo_loss(theta, frozen, y, 2.0))  # noqa: E731
    assert value(weight * a + (1 - weight) * b) <= weight * value(a) + (1 - weight) * value(b) + 1e-10


def test_the_response_formula_is_the_derivative_of_the_softmax():
    u = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    change = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    tau, h = 1.7, 1e-6
    positive = lambda t: ((u + t * change) / tau).softmax(-1).diagonal()  # noqa: E731
    numeric = (positive(h) - positive(-h)) / (2 * h)
    torch.testing.assert_close(
        theory.first_order_response((u / tau).softmax(-1), change, tau), numeric, rtol=1e-6, atol=1e-9
    )


def test_the_optimal_learner_is_pure_on_lucky_neurons():
    alpha = torch.tensor([[3.0, 0.1, 0.1], [-2.0, 0.1, 0.1], [1.0, 1.0, 1.0]])
    lucky = torch.tensor([[True, False, False], [True, False, False], [False, False, False]])
    target = theory.optimal_learner(alpha, lucky, 4.0, 1.5)
    torch.testing.assert_close(target, torch.tensor([[1.5, 0, 0], [-1.5, 0, 0], [0, 0, 0]]))


def test_logits_approach_uniform_quadratically_in_the_weights():
    problem, run = TokenPairs(dim=20), Contrastive(1, 16, 0.1, 4.0, None)
    views = run.attended(run.pairs(problem, Cells([0.3], [0.05], [0.0]), SEEDS, "logits").next(16))
    start = random_start(problem, 1, SEEDS, width=24, scale=1e-3)
    apart = [
        (infonce_step(replace(start, weights=s * start.weights), *views, 4.0).softmax - 1 / 16).abs().max()
        for s in (1, 0.5)
    ]
    assert float(apart[0] / apart[1]) == pytest.approx(4, rel=1e-3)


def test_printed_rates_have_ratio_epsilon_over_d():
    rare, other = theory.printed_rates(0.3, 0.125, 8, 0.02, 1.0)
    assert other / rare == pytest.approx(0.3 / 8)


def test_expected_similarity_is_the_sum_over_neurons_and_features():
    problem = TokenPairs(2, 1, 5, 2, 0.5)
    run, start = Contrastive(1, 2, 0.1, 1.0, None), random_start(problem, 1, SEEDS, width=4, scale=1.0)
    first, second = run.attended(run.pairs(problem, Cells([0.5], [0.2], [0.0]), SEEDS, "similar").next(60_000))
    products = (start(first) * start(second)).sum(-1)[0, 0]
    expected = theory.positive_similarity(start.weights[0, 0, :, :3], theory.pair_correlations(problem, 0.5)[0])
    assert abs(float(products.mean() - expected)) < 4 * float(products.std()) / math.sqrt(60_000)


def test_a_readout_of_perfect_neurons_is_nearly_perfect_and_of_silent_ones_is_the_mean():
    problem = TokenPairs(3, 2, 6, 4, 0.4)
    run, cells = Contrastive(1, 2, 0.1, 1.0, None), Cells([0.2], [0.02], [0.0])
    pure = torch.eye(6, dtype=torch.float64)[None, None]
    silent = torch.zeros(1, 1, 6, dtype=torch.float64)
    from assay.studies.imbalanced_contrastive.learners import Encoders

    good = read_out(problem, cells, SEEDS, Encoders(pure, silent, 4), run, train=600, test=1000)
    assert float(good.cosine) > 0.98
    assert float(good.error) < 0.05 * float(good.target_variance)
    none = read_out(problem, cells, SEEDS, Encoders(pure, silent + 9, 4), run, train=600, test=1000)
    assert float(none.cosine) == 0
    assert float(none.error) == pytest.approx(float(none.target_variance), rel=0.05)
