from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.universality_tradeoff import theory
from assay.studies.universality_tradeoff.learners import gram
from assay.studies.universality_tradeoff.problem import LinearTasks
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


@settings(max_examples=12, deadline=None)
@given(shared=st.integers(1, 6), private=st.integers(1, 8), tasks=st.integers(2, 5))
def test_even_mixtures_have_weights_one_and_one_over_t(shared, private, tasks):
    found = theory.optimal_weights(LinearTasks(shared, shared + private, tasks))
    assert found == pytest.approx((1.0, *[1 / tasks] * tasks), abs=2e-4)
    assert (found[0], found[1]) == pytest.approx(theory.even_weights(tasks), abs=2e-4)


def test_uneven_mixtures_follow_the_shares_and_can_drop_a_task():
    problem = LinearTasks(2, 4, 3, mixture=(0.6, 0.3, 0.1))
    alpha, *private = theory.optimal_weights(problem)
    assert alpha == pytest.approx(1, abs=1e-4)
    assert private == sorted(private, reverse=True)
    assert private[2] == pytest.approx(0, abs=1e-4)
    assert 2 * alpha + 2 * sum(private) == pytest.approx(4, abs=1e-6)  # all of the budget is used
    finer = theory.optimal_weights(problem, nodes=48)
    assert (alpha, *private) == pytest.approx(finer, abs=1e-4)
    turned = theory.optimal_weights(LinearTasks(2, 4, 3, mixture=(0.1, 0.6, 0.3)))
    assert turned[1:] == pytest.approx((private[2], private[0], private[1]), abs=1e-4)


def test_the_program_finds_the_minimum_of_the_sampled_loss():
    problem = LinearTasks(2, 4, 3, mixture=(0.6, 0.3, 0.1))
    z = torch.randn(40_000, 4, generator=torch.Generator().manual_seed(0)).double()
    shared, private = z[:, :2].square().sum(1), z[:, 2:].square().sum(1)

    def loss(first: float) -> float:
        weights = torch.tensor([first, 1 - first, 0.0])
        margins = shared + weights[:, None] * private
        return float((torch.tensor(problem.weights)[:, None] * theory.LOSSES["logistic"](margins)).mean(1).sum())

    best = min((loss(k / 200), k / 200) for k in range(100, 201))[1]
    assert best == pytest.approx(theory.optimal_weights(problem)[1], abs=0.02)


def test_weak_features_are_dropped_shared_ones_too():
    alpha, *private = theory.optimal_weights(LinearTasks(2, 4, 3, private_scales=(2.0, 1.0, 0.5)))
    assert (alpha, private[2]) == pytest.approx((1, 0), abs=1e-4)
    assert private[1] > private[0] > 0.4  # a large variance needs less weight for the same margin
    weak = theory.optimal_weights(LinearTasks(2, 4, 3, shared_scales=(0.3, 0.3, 0.3)))
    assert weak == pytest.approx((0, 2 / 3, 2 / 3, 2 / 3), abs=1e-4)


def test_scales_stand_for_weights():
    """A common factor of all scales changes the margins and not where the budget goes to in an even mixture."""
    doubled = LinearTasks(2, 5, 3, shared_scales=(2.0,) * 3, private_scales=(2.0,) * 3)
    assert theory.optimal_weights(doubled) == pytest.approx((1, 1 / 3, 1 / 3, 1 / 3), abs=2e-4)


def test_one_task_alone_has_weight_one():
    assert theory.optimal_weights(LinearTasks(3, 3, 1)) == (1.0,)


def test_two_optima_of_different_rank_have_the_same_blocks_and_norms():
    problem = LinearTasks(2, 5, 4, 3)
    apart, together = theory.canonical(problem, (1.0, *[0.25] * 4)), theory.superposed(problem)
    for weights in (apart, together):
        assert float(torch.linalg.matrix_norm(weights, 2)) == pytest.approx(1)
        assert float(weights.square().sum()) == pytest.approx(5)
        found = gram(weights, torch.eye(problem.dim, dtype=torch.float64))
        for t in range(4):
            own = problem.own(t)
            block = found[own][:, own]
            torch.testing.assert_close(block, torch.diag(torch.tensor([1.0] * 2 + [0.25] * 3, dtype=torch.float64)))
    assert int(torch.linalg.matrix_rank(apart)) == 14
    assert int(torch.linalg.matrix_rank(together)) == 5


@pytest.mark.parametrize("build", ["canonical", "superposed"])
def test_the_predictor_norm_is_that_of_the_smallest_exact_predictor(build):
    problem = LinearTasks(2, 5, 4, 3)
    encoder = theory.canonical(problem, (1.0, *[0.25] * 4)) if build == "canonical" else theory.superposed(problem)
    z, _ = problem.pairs(SEEDS, "sample", 400, task=1)
    truth = problem.label_weights(SEEDS, "labels", 0.3, draws=1)[:, 0]
    answers = torch.einsum("snd,sd->sn", z[..., problem.own(1)], truth)
    found = (torch.linalg.pinv(z @ encoder.T) @ answers.unsqueeze(-1)).squeeze(-1)
    expected = theory.predictor_norm(1.0, 0.25, 0.7, 0.3)
    torch.testing.assert_close(found.norm(dim=-1), torch.full((2,), expected, dtype=torch.float64))


def test_a_feature_without_weight_needs_an_infinite_predictor():
    assert theory.predictor_norm(1.0, 0.0, 0.5, 0.5) == math.inf
    assert theory.predictor_norm(1.0, 0.0, 0.5, 0.0) == pytest.approx(math.sqrt(0.5))


@given(shared=st.integers(1, 20), tasks=st.integers(1, 64))
def test_the_ratio_of_leading_terms(shared, tasks):
    problem = LinearTasks(shared, 2 * shared, tasks)
    universal = theory.leading_complexity(problem, *theory.even_weights(tasks), 0.5, 10)
    specific = theory.leading_complexity(problem, 1.0, 1.0, 0.5, 10)
    assert universal / specific == pytest.approx((tasks + 1) / (2 * math.sqrt(tasks)))
    assert universal / specific == pytest.approx(theory.bound_ratio(problem, 0.5))


def rademacher(problem, encoder, norm, labels, draws):
    """The complexity by its definition: signs ε are drawn for m points, and sup Σ εᵢuᵀφ(xᵢ)/m over ‖u‖ ≤ B is
    B‖Σ εᵢφ(xᵢ)‖/m. The mean over draws and its standard error."""
    z = problem.pairs(SEEDS, "points", labels * draws, task=0)[0].unflatten(1, (draws, labels))
    signs = SEEDS.normal("signs", draws, labels).sign().unsqueeze(-1)
    best = norm / labels * (signs * (z @ encoder.T)).sum(2).norm(dim=-1).flatten()
    return float(best.mean()), float(best.std()) / math.sqrt(best.numel())


@pytest.mark.parametrize("labels", [4, 25])
def test_the_complexity_of_the_specific_encoder_is_that_of_a_chi_distribution(labels):
    """With weight 1 on all r features it is B E‖N(0, I_r)‖/√m, whose mean is known; √r, by Jensen, is a little more."""
    problem = LinearTasks(2, 5, 1)
    norm = theory.predictor_norm(1.0, 1.0, 0.7, 0.3)
    found, error = rademacher(problem, theory.canonical(problem, (1.0, 1.0)), norm, labels, 4000)
    chi = math.sqrt(2) * math.gamma(3) / math.gamma(2.5)
    assert found == pytest.approx(norm * chi / math.sqrt(labels), abs=4 * error)
    leading = theory.leading_complexity(problem, 1.0, 1.0, 0.3, labels)
    assert leading == pytest.approx(math.sqrt(5 / labels))  # by hand: ‖u*‖ = 1
    assert found + 4 * error < leading


@pytest.mark.parametrize("private", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("build", ["canonical", "superposed"])
def test_the_leading_term_bounds_the_sampled_complexity_of_the_universal_encoder(build, private):
    """And not by much: E‖v‖ ≥ √(2/π) √(E‖v‖²) for a Gaussian v, so that a lost factor would show on either side."""
    problem = LinearTasks(4, 8, 4, 2)
    encoder = theory.canonical(problem, (1.0, *[0.25] * 4)) if build == "canonical" else theory.superposed(problem)
    norm = theory.predictor_norm(1.0, 0.25, 1 - private, private)
    found, error = rademacher(problem, encoder, norm, 10, 2000)
    leading = theory.leading_complexity(problem, 1.0, 0.25, private, 10)
    assert leading == pytest.approx(math.sqrt((1 + 3 * private) * 5 / 10))  # by hand: (v₁ + 4v₂)(4 + 4/4)/m
    assert math.sqrt(2 / math.pi) * leading < found - 4 * error < found + 4 * error < leading


def test_the_leading_term_has_the_scales_of_the_task():
    """E‖Aξ‖² by draws of the task's own data."""
    problem = LinearTasks(2, 5, 3, shared_scales=(1.0, 0.5, 2.0), private_scales=(3.0, 1.0, 0.2))
    weights = (0.8, 0.4, 0.3, 0.5)
    encoder = theory.canonical(problem, weights)[:, : problem.features]
    for task in range(3):
        z = problem.pairs(SEEDS, f"data of {task}", 40_000, task=task)[0][..., : problem.features]
        size = float((z @ encoder.T).square().sum(-1).mean())
        norm = theory.predictor_norm(0.8, weights[task + 1], 0.7, 0.3)
        found = theory.leading_complexity(problem, 0.8, weights[task + 1], 0.3, 12, task=task)
        assert found == pytest.approx(norm * math.sqrt(size / 12), rel=0.02)


@pytest.mark.parametrize(
    "given", [{"mixture": (0.6, 0.4)}, {"shared_scales": (1.0, 2.0)}, {"private_scales": (1.0, 2.0)}]
)
def test_the_ratio_of_bounds_is_refused_where_weights_are_not_one_and_one_over_t(given):
    with pytest.raises(ValueError, match="even mixtures of features with variance 1"):
        theory.bound_ratio(LinearTasks(2, 4, 2, **given), 0.5)


def test_the_risk_bound_by_hand():
    assert theory.risk_bound(0.25, 200) == pytest.approx(1 + 8 * math.sqrt(math.log(80) / 100))
    assert theory.risk_bound(0.25, 200, delta=4 / math.e**2) == pytest.approx(1 + 8 * math.sqrt(0.02))


def test_the_bound_is_lower_for_many_tasks_where_little_is_private():
    assert theory.bound_ratio(LinearTasks(10, 20, 4), 0.1) < 1 < theory.bound_ratio(LinearTasks(10, 20, 4), 0.5)
    assert theory.bound_ratio(LinearTasks(10, 20, 32), 0.1) == pytest.approx(1.45, abs=0.01)


def test_similarity_has_the_values_of_the_closed_form():
    rows = [[theory.mixture_cka(2, 5, i, j) for j in (1, 2, 3, 4)] for i in (1, 2)]
    assert rows[0] == pytest.approx([1, 0.944, 0.878, 0.832], abs=1e-3)
    assert rows[1] == pytest.approx([0.944, 1, 0.987, 0.968], abs=1e-3)
    assert theory.foreign_cka(2, 5) == pytest.approx(math.sqrt(0.4))


@given(beta=st.floats(0.01, 1))
def test_the_regularised_bound_is_least_at_equal_weights(beta):
    assert theory.regularised_bound(1.0, beta) >= theory.regularised_bound(1.0, 1.0) - 1e-12


def test_the_update_recovers_at_its_radius():
    problem = LinearTasks(4, 8, 4)
    assert theory.full_recovery(problem) == pytest.approx(1.0)
    assert theory.updated_weight(problem, 0.0) == 0.5
    assert theory.updated_weight(problem, 0.5) == pytest.approx(0.75)
    assert theory.updated_weight(problem, 9.0) == 1.0


def test_least_squares_on_shared_features_has_a_floor():
    assert theory.other_task_risk(10, 10, 0.5) == math.inf
    assert theory.other_task_risk(10**6, 10, 0.5) == pytest.approx(0.5, abs=1e-4)
    assert theory.specific_risk(5, 20) == 0.75
    assert theory.specific_risk(30, 20) == 0.0
