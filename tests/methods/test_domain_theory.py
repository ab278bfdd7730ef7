"""The theory of domains as a calculator: known values, the study's own numbers by another road, samples, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods import domain_theory
from assay.methods.domain_theory import _accuracy, _loss, _norm
from assay.studies.nuclear_norm.batches import theory as batches
from assay.studies.nuclear_norm.optima import theory
from assay.studies.nuclear_norm.problem import Environments

SIZES = [(50, 247, 0.45), (40, 300, 0.48), (10, 110, 0.3), (4, 16, 0.2), (2, 4, 0.3), (1, 1, 0.4)]
FEATURES = dict(r=st.integers(1, 80), m=st.integers(1, 400), gamma=st.floats(0.02, 0.49))


def sample(r, m, gamma, rows, seed=0):
    """Label times features (rows, r + m)."""
    random = np.random.default_rng(seed)
    signs = np.where(random.random((rows, m)) < 0.5 + gamma, 1.0, -1.0)
    return random.random((rows, r + m)) * np.hstack([np.ones((rows, r)), signs])


def test_the_numbers_of_the_specification():
    found = domain_theory(50, 247, 0.45, decay=0.1, strength=0.06)
    assert (found.weight_decay.alpha, found.weight_decay.beta) == pytest.approx((0.0390, 0.03497), abs=1e-5)
    assert found.weight_decay.outside == 0
    assert found.nuclear_norm.beta == 0
    assert found.nuclear_norm.outside == 1
    strong = domain_theory(50, 247, 0.45, decay=1.0).weight_decay
    assert (strong.alpha, strong.beta) == pytest.approx((0.02397, 0.02153), abs=1e-5)


@pytest.mark.parametrize(("gamma", "decay", "outside"), [(0.2, 0.1, 0.899), (0.2, 1.0, 0.867), (0.4, 1.0, 0.647)])
def test_two_features_by_hand(gamma, decay, outside):
    """Inside 1 − (½ − γ)ρ/2 and outside 1 − (½ + γ)ρ/2 with ρ = β/α."""
    found = domain_theory(1, 1, gamma, decay=decay).weight_decay
    ratio = found.beta / found.alpha
    assert found.inside == pytest.approx(1 - (0.5 - gamma) * ratio / 2, abs=1e-8)
    assert found.outside == pytest.approx(1 - (0.5 + gamma) * ratio / 2, abs=1e-8)
    assert found.outside == pytest.approx(outside, abs=1.1e-3)


def test_bounds_and_sizes_by_hand():
    found = domain_theory(100, 900, 0.4, domains=3)
    assert found.alpha_bound == pytest.approx(0.1)
    assert found.ratio_bound == pytest.approx(1.875)
    assert found.outside_bound == pytest.approx(4.54e-5, rel=1e-3)
    assert found.least_invariant == 57  # above 9/0.16 = 56.25
    assert found.least_dimension == 726  # above 100/0.16 + 100 = 725
    assert found.speaks
    assert (found.rows, found.rows_per_domain) == (2001, 667)  # twice 1,000 in three equal parts
    assert found.lam == pytest.approx(0.03 * math.sqrt(2001))
    assert found.shortfall(2000) == pytest.approx(1 / 16)
    assert "proved for these sizes" in found.headline()
    few = domain_theory(40, 100, 0.3)
    assert few.least_invariant == 101  # 3/√100 = 0.3 is not below γ
    assert few.least_dimension == 1224  # above 101/0.09 + 101 = 1223.2
    assert not few.speaks
    assert "ask for 101 invariant features and 1224 in all" in few.headline()


@pytest.mark.parametrize(("r", "m", "gamma"), SIZES)
@pytest.mark.parametrize(("decay", "strength"), [(0.1, 0.03), (1.0, 0.1)])
def test_optima_are_those_of_the_study(r, m, gamma, decay, strength):
    """The study has the laws of both sums on a grid; here everything is one integral of a transform."""
    problem = Environments(r + m, r, gamma)
    found = domain_theory(r, m, gamma, decay=decay, strength=strength)
    for ours, theirs in (
        (found.weight_decay, theory.decayed(problem, decay)),
        (found.nuclear_norm, theory.penalised(problem, strength)),
    ):
        assert (ours.alpha, ours.beta) == pytest.approx((theirs.alpha, theirs.beta), rel=1e-5)
        assert ours.outside <= math.exp(theirs.log_accuracy(problem)) + 1e-8
        assert ours.outside >= theirs.least_accuracy(problem) - 1e-8
    assert found.gamma_limit == pytest.approx(theory.threshold(r))
    if theory.legal(r, gamma):
        assert found.least_dimension == theory.smallest_dimension(r, gamma)
    assert (r >= found.least_invariant) == theory.legal(r, gamma)
    assert found.few_rows_suffice == (batches.few_rows_ratio(problem) > batches.needed_ratio(problem))


@settings(max_examples=30, deadline=None)
@given(alpha=st.floats(0.01, 3), beta=st.floats(0.01, 3), **FEATURES)
def test_the_norm_is_the_studys_and_its_slopes_are_right(r, m, gamma, alpha, beta):
    weights = torch.tensor([alpha, beta], dtype=torch.float64)
    problem = Environments(r + m, r, gamma)
    value, slope, curvature = _norm(r, m, gamma, weights.numpy())
    assert value == pytest.approx(float(theory.nuclear_norm(problem, weights)))
    gradient = torch.func.grad(lambda w: theory.nuclear_norm(problem, w))
    assert slope == pytest.approx(gradient(weights).numpy())
    assert curvature == pytest.approx(torch.func.jacfwd(gradient)(weights).numpy(), rel=1e-6, abs=1e-9)


def test_the_loss_its_slopes_and_the_accuracies_are_those_of_samples():
    r, m, gamma, weights = 3, 8, 0.2, np.array([0.7, 0.4])
    z = sample(r, m, gamma, 200_000)
    sums = np.stack([z[:, :r].sum(1), z[:, r:].sum(1)])
    margin = weights @ sums
    value, slope, curvature = _loss(r, m, gamma, weights)
    share = 1 / (1 + np.exp(margin))

    def near(expected, drawn):
        assert abs(expected - drawn.mean()) < 4 * drawn.std() / math.sqrt(len(drawn))

    near(value, np.log1p(np.exp(-margin)))
    near(_accuracy(r, m, gamma, weights), (margin >= 0).astype(float))
    near(_accuracy(r, m, -gamma, weights), (weights @ [sums[0], sample(r, m, -gamma, 200_000, 1)[:, r:].sum(1)] >= 0))
    for i in range(2):
        near(slope[i], -share * sums[i])
        for j in range(2):
            near(curvature[i, j], share * (1 - share) * sums[i] * sums[j])


def test_the_norm_of_a_batch_falls_short_as_it_says():
    """The leading order at most: d/(8·rows) of the norm, which equal deviations attain but for the mean's."""
    r, m, gamma, weights = 30, 10, 0.2, np.array([1.0, 0.5])
    whole = _norm(r, m, gamma, weights)[0]
    scale = np.repeat(weights, [r, m])
    for rows in (400, 1600):
        norms = [np.linalg.norm(sample(r, m, gamma, rows, s) * scale, "nuc") / math.sqrt(rows) for s in range(30)]
        short = 1 - np.mean(norms) / whole
        limit = domain_theory(r, m, gamma).shortfall(rows)
        assert 0.6 * limit < short < limit


@settings(max_examples=15, deadline=None)
@given(**FEATURES)
def test_stronger_penalties_and_weaker_environments(r, m, gamma):
    found = domain_theory(r, m, gamma, decay=0.1, strength=0.02)
    more = domain_theory(r, m, gamma, decay=0.2, strength=0.04)
    weights = [np.array([each.alpha, each.beta]) for each in (found.nuclear_norm, more.nuclear_norm)]
    # What is penalised falls; a single weight may rise when the other one goes.
    weak, strong = (_norm(r, m, gamma, each)[0] for each in weights)
    assert strong <= weak * (1 + 1e-6)
    weak, strong = (r * each.alpha**2 + m * each.beta**2 for each in (found.weight_decay, more.weight_decay))
    assert strong < weak
    assert all(each.inside >= each.outside for each in (found.weight_decay, found.nuclear_norm))
    assert 0 < found.weight_decay.beta < found.weight_decay.alpha
    assert more.rows == found.rows == 2 * (r + m)
    weaker = domain_theory(r, m, gamma / 2)
    assert weaker.least_dimension > found.least_dimension
    assert weaker.ratio_bound == pytest.approx(2 * found.ratio_bound)


@pytest.mark.parametrize(("r", "gamma"), [(40, 0.48), (50, 0.45), (100, 0.35)])
def test_the_bounds_hold_where_the_theory_speaks(r, gamma):
    found = domain_theory(r, theory.smallest_dimension(r, gamma) - r, gamma)
    assert found.speaks
    assert found.weight_decay.alpha < found.alpha_bound
    assert found.weight_decay.alpha / found.weight_decay.beta < found.ratio_bound
    assert found.weight_decay.outside <= found.outside_bound
    assert (found.nuclear_norm.outside == 1) == (gamma < found.gamma_limit)


def test_a_penalty_beyond_all_gain_leaves_nothing():
    found = domain_theory(10, 50, 0.3, strength=5.0).nuclear_norm
    assert (found.alpha, found.beta, found.inside, found.outside) == (0, 0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("invariant", 0),
        ("invariant", 2.5),
        ("environmental", 0),
        ("gamma", 0.0),
        ("gamma", 0.5),
        ("gamma", math.nan),
        ("decay", 0.0),
        ("strength", -1.0),
        ("strength", math.inf),
        ("domains", 0),
        ("shortfall", 0.5),
    ],
)
def test_bad_input_is_refused_in_one_sentence(name, value):
    with pytest.raises(ValueError, match=f"^{name} must [^\n]*$"):
        domain_theory(**{"invariant": 10, "environmental": 50, "gamma": 0.3, name: value})
    with pytest.raises(ValueError, match="rows must"):
        domain_theory(2, 3, 0.3).shortfall(0)
