import itertools
import math
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from assay.methods.contrastive_planning import (
    Descent,
    growth_factors,
    learnability_threshold,
    learnable,
    plan,
    pruning_horizon,
    stage_one_steps,
)
from assay.methods.loss_floor import loss_floor
from assay.methods.neuron_sets import neuron_sets, required_width, set_thresholds

DESCENT = Descent(0.05, 0.01, 4.0, 512)


def test_growth_is_the_formula_and_rises_with_the_correlation():
    kappa = torch.tensor([4.8, 1.44, 0.0], dtype=torch.float64)
    found = growth_factors(kappa, DESCENT)
    expected = [1 - 0.0005 + 0.05 / 4 * (1 - 1 / 512) * k for k in (4.8, 1.44, 0.0)]
    assert found.tolist() == pytest.approx(expected)
    assert found[0] == pytest.approx(1.0594, abs=1e-4)


@given(decay=st.floats(0.001, 0.9), kappa=st.floats(0, 10))
@settings(deadline=None)
def test_a_feature_is_learnable_exactly_when_it_grows(decay, kappa):
    descent = Descent(0.05, decay, 4.0, 64)
    value = torch.tensor([kappa], dtype=torch.float64)
    if abs(kappa / learnability_threshold(descent) - 1) > 1e-9:
        assert bool(learnable(value, descent)) == bool(growth_factors(value, descent) > 1)
        assert bool(learnable(value, descent)) == (kappa > learnability_threshold(descent))


def test_stage_one_ends_at_the_first_step_where_features_hold_half():
    energy = torch.tensor([[1.0, 2.0], [0.01, 0.5], [9.0, 9.0]])
    noise, growth, shrink = torch.tensor([30.0, 40.0, 1.0]), torch.tensor([1.05, 1.01]), 0.999
    for row in range(3):
        steps = 0
        while sum(energy[row, j] * growth[j] ** (2 * steps) for j in range(2)) < noise[row] * shrink ** (2 * steps):
            steps += 1
        assert stage_one_steps(energy, noise, growth, shrink)[row] == steps
    never = stage_one_steps(torch.ones(1, 2), torch.tensor([5.0]), torch.tensor([0.99, 0.98]), 0.999)
    assert never[0] == math.inf


def test_stage_one_with_features_without_energy_and_noise_without_end():
    """A feature that starts at zero never counts, however fast it would grow: 0 · ∞ used to hang."""
    found = stage_one_steps(torch.tensor([[0.0, 1e-3]]), torch.tensor([1.0]), torch.tensor([1.1, 1.00005]), 1.0)
    assert found[0] == math.ceil(math.log(1000) / (2 * math.log(float(torch.tensor(1.00005)))))
    growth = torch.tensor([1.1, 1.2])
    assert stage_one_steps(torch.zeros(1, 2), torch.ones(1), growth, 0.99)[0] == math.inf
    assert stage_one_steps(torch.ones(1, 2), torch.zeros(1), growth, 0.99)[0] == 0
    assert stage_one_steps(torch.ones(1, 2), torch.full((1,), math.nan), growth, 0.99)[0].isnan()
    assert stage_one_steps(torch.full((1, 2), 1e-300), torch.ones(1), growth, 1.0)[0] > 1000


@given(d=st.integers(10, 200), r=st.floats(0.3, 1.0))
@settings(max_examples=12, deadline=None)
def test_fewer_features_per_neuron_and_more_lucky_ones_as_r_rises(d, r):
    low, high = neuron_sets(d, 0.9 * r), neuron_sets(d, r)
    assert low.features_per_neuron > high.features_per_neuron
    assert low.lucky <= high.lucky
    assert required_width(d, r) <= required_width(d, 0.9 * r)
    assert high.lucky <= high.dominant <= high.ordinary


def test_numbers_at_a_hundred_features():
    """The printed lower bound on lucky neurons takes (1 − p₂)^{d−1} for 1; it is 0.71, 0.0125 and 9e-8."""
    for r, dominant, factor in ((1.0, 1.2e-3, 0.71), (0.7, 1.8e-6, 0.0125), (0.5, 8e-13, 9e-8)):
        sets = neuron_sets(100, r)
        assert sets.dominant == pytest.approx(dominant, rel=0.05)
        assert sets.independent / sets.dominant == pytest.approx(factor, rel=0.05)
    assert neuron_sets(9, 0.7).lucky == 0
    assert required_width(9, 0.7) == math.inf
    assert required_width(100, 0.7, exact=False) == pytest.approx(100 ** (1.1 / 0.49))


def sampled_lucky(d, r, samples=200_000):
    """Pr(lucky) with its standard error, by sampling the dominant share above its threshold and the others given it."""
    upper, lower = set_thresholds(d, r, 0.1)
    law, rng = beta(0.5, (d - 1) / 2), np.random.default_rng(0)
    others = rng.standard_normal((samples, d - 1)) ** 2
    left = 1 - law.isf(law.sf(upper) * (1 - rng.random(samples)))
    inside = others.max(1) / others.sum(1) * left <= lower
    return law.sf(upper) * inside.mean(), law.sf(upper) * inside.std() / math.sqrt(samples)


@pytest.mark.parametrize(("d", "r"), [(15, 1.0), (20, 0.9), (30, 1.0), (30, 0.9), (30, 0.7), (100, 0.7)])
def test_the_lucky_probability_is_the_sampled_one(d, r):
    estimate, error = sampled_lucky(d, r, 200_000 if d < 100 else 60_000)
    assert abs(neuron_sets(d, r).lucky - estimate) < 4 * error
    assert error < 0.1 * estimate


def test_treating_features_as_independent_is_off_by_factors():
    assert neuron_sets(100, 0.7).lucky > 4 * neuron_sets(100, 0.7).independent
    assert neuron_sets(100, 0.7).independent == pytest.approx(2.2e-8, rel=0.05)
    assert neuron_sets(30, 0.7).lucky > 8 * neuron_sets(30, 0.7).independent


def brute_force_floor(rates, negatives):
    total = 0.0
    for active in itertools.product((0, 1), repeat=len(rates)):
        weight = np.prod([q if a else 1 - q for q, a in zip(rates, active, strict=True)])
        p = np.prod([q / 2 for q, a in zip(rates, active, strict=True) if a])
        total += weight * sum(
            math.comb(negatives, n) * p**n * (1 - p) ** (negatives - n) * math.log(1 + n) for n in range(negatives + 1)
        )
    return total


@given(rates=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=5), negatives=st.integers(1, 12))
@settings(max_examples=20, deadline=None)
def test_the_loss_floor_is_the_sum_over_all_supports(rates, negatives):
    assert loss_floor(rates, negatives) == pytest.approx(brute_force_floor(rates, negatives), abs=1e-10)


def test_the_loss_floor_is_what_perfect_features_cost():
    """Sampled anchors and negatives: log(1 + the negatives that contain the anchor's signed features)."""
    rates, rng = np.array([0.3] * 5 + [0.09] * 4), np.random.default_rng(0)
    costs = []
    for _ in range(300):
        signs = (rng.random((128, 9)) < rates) * rng.choice([-1, 1], (128, 9))
        contains = ((signs[:, None] == 0) | (signs[:, None] == signs[None])).all(-1)
        costs.append(np.log(contains.sum(1)))
    means = np.mean(costs, axis=1)
    assert abs(means.mean() - loss_floor(rates, 127)) < 4 * means.std() / math.sqrt(len(means))
    assert loss_floor([0.0], 9) == pytest.approx(math.log(10))


@given(rates=st.lists(st.floats(0.001, 1), min_size=1, max_size=7), negatives=st.sampled_from([1, 12, 127, 511]))
@settings(max_examples=20, deadline=None)
def test_the_loss_floor_of_many_rates_is_the_sum_over_all_supports(rates, negatives):
    with patch("assay.methods.loss_floor.SUPPORTS", 0):
        found = loss_floor(rates, negatives)
    assert found == pytest.approx(loss_floor(rates, negatives), abs=1e-12)


def test_the_loss_floor_takes_any_number_of_rates():
    """2³⁰ supports at once; a feature that is never there, or next to never, changes nothing."""
    rates = list(np.linspace(0.02, 0.1, 30))
    found = loss_floor(rates, 127)
    assert loss_floor([0.1] * 30, 127) < found < loss_floor([0.02] * 30, 127)
    assert loss_floor([*rates, 0.0, 1e-300], 127) == pytest.approx(found, abs=1e-12)
    assert 0 <= loss_floor([0.02] * 2000, 127) < 1e-10  # whose whole support has a probability below all numbers


def test_the_horizon_is_the_number_of_boosted_steps():
    assert 1.02 ** pruning_horizon(0.25, 0.02) == pytest.approx(4)


def test_a_plan_warns_of_what_cannot_be_learned():
    kappa = torch.tensor([4.8] * 30)
    found = plan(kappa, DESCENT, dim=300, width=100)
    assert bool(found.learnable.all())
    assert found.lucky_per_feature == pytest.approx(100 * neuron_sets(30).lucky)
    assert found.stage_one == math.ceil(math.log(270 / 30) / (2 * math.log(float(found.growth[0]) / 0.9995)))
    with pytest.warns(UserWarning, match="1 of 30 features grow no faster"):
        plan(torch.cat([kappa[1:], torch.tensor([4.0])]), Descent(0.05, 1.1, 4.0, 512), dim=300, width=100)
    with pytest.warns(UserWarning, match="no neuron starts out lucky"):
        plan(torch.tensor([4.8] * 8 + [0.48]), DESCENT, dim=100, width=24)


@pytest.mark.parametrize("nothing", [0.0, -1e-3])
def test_features_that_cannot_be_learned_need_infinite_width_and_leave_the_plan_of_the_others(nothing):
    kappa = torch.tensor([4.8] * 28 + [4.0, nothing])
    with pytest.warns(UserWarning, match="1 of 30 features grow no faster"):
        found = plan(kappa, DESCENT, dim=300, width=100)
    assert found.learnable.tolist() == [True] * 29 + [False]
    assert found.required_width == required_width(30, float(kappa[28] / kappa[0]))
    assert found.width_per_feature.tolist() == pytest.approx([found.required_width] * 29 + [math.inf])
    with pytest.warns(UserWarning, match="30 of 30 features"):
        none = plan(torch.full((30,), nothing), DESCENT, dim=300, width=100)
    assert none.required_width == math.inf
    assert none.width_per_feature.isinf().all()
    assert none.stage_one == math.inf


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Descent(0.1, 10.0, 1.0, 8), r"\[0, 1\)"),
        (lambda: Descent(0.1, 0.1, 0.0, 8), "positive"),
        (lambda: Descent(0.1, 0.1, 1.0, 1), "candidates"),
        (lambda: set_thresholds(2, 1.0, 0.1), "at least 3"),
        (lambda: neuron_sets(10, 1.0, margin=1.0), "margin"),
        (lambda: neuron_sets(10, 0.0), "ratio"),
        (lambda: loss_floor([1.2], 5), "probabilities"),
        (lambda: loss_floor([0.2], 0), "negative"),
        (lambda: pruning_horizon(0.5, 0.0), "positive"),
        (lambda: plan(torch.ones(5), DESCENT, dim=4, width=3), "do not fit"),
        (lambda: plan(torch.ones(3, 3), DESCENT, dim=4, width=3), r"must be \(features,\), not \(3, 3\)"),
        (lambda: plan(torch.ones(3), DESCENT, dim=4, width=0), "width must be at least 1"),
        (lambda: plan(torch.ones(3), DESCENT, dim=4.5, width=3), "dim must be an integer"),
        (lambda: plan(torch.tensor([1.0, math.nan, 1.0]), DESCENT, dim=4, width=3), "must be finite"),
    ],
)
def test_impossible_plans_are_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()
