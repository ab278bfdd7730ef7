from __future__ import annotations

import math

import pytest
import torch

from assay.studies.gradient_features.emergence.theory import axis_share, xor_share
from assay.studies.gradient_features.mixtures.problem import UnequalSpread
from assay.studies.gradient_features.mixtures.theory import spread_gradient
from assay.studies.gradient_features.problem import GaussianMixture
from assay.studies.gradient_features.theory import mixture_gradient, simplified_gradient
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


def neurons(dim: int, count: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    weights = SEEDS.normal("weights", count, dim)
    return weights, SEEDS.normal("thresholds", count) * math.sqrt(dim)


def test_components_have_their_own_spread_and_mean():
    problem = UnequalSpread.xor(8, 1.0, 0.25)
    sample = problem.sample(SEEDS, "train", 20_000)
    for j, deviation in enumerate((0.25, 0.25, 1.0, 1.0)):
        own = sample.inputs[0][sample.components[0] == j] - problem.mixture.means[j].double()
        assert float(own.mean(0).abs().max()) < 5 * deviation / math.sqrt(len(own))
        assert float(own.std()) == pytest.approx(deviation, rel=4 / math.sqrt(2 * own.numel()))
    squares = sample.inputs.square().sum(-1)
    assert float(squares.mean()) == pytest.approx(problem.typical_norm**2, abs=5 * float(squares.std()) / 200)


@pytest.mark.parametrize("ratio", [0.25, 1.0, 3.0])
def test_the_closed_form_is_what_samples_say(ratio):
    problem, n = UnequalSpread.xor(9, 1.0, ratio), 200_000
    weights, levels = neurons(9)
    sample = problem.sample(SEEDS, "train", n)
    counted = simplified_gradient(sample.inputs, sample.labels, weights, levels)
    # Each coordinate of a summand has at most the second moment of that input coordinate; four standard errors of it.
    error = sample.inputs.square().mean((0, 1)).sqrt() / math.sqrt(n)
    assert bool(((counted - spread_gradient(problem, weights, levels)).abs() < 4.5 * error).all())


def test_equal_spreads_are_the_mixture():
    mixture = GaussianMixture.multi_xor(12, (0.4, 0.4, 0.1, 0.1), (1.0, -1.0, 1.0, -1.0), norm=3.0, deviation=0.7)
    weights, levels = neurons(12)
    same = spread_gradient(UnequalSpread(mixture, torch.full((8,), 0.7)), weights, levels)
    assert torch.allclose(same, mixture_gradient(mixture, weights, levels), atol=1e-7)


def test_a_component_that_is_always_seen_gives_its_mean_whatever_its_spread():
    problem = UnequalSpread.xor(9, 1.0, 0.25)
    weights, levels = neurons(9)
    below = spread_gradient(problem, weights, torch.full_like(levels, -1e6))
    assert torch.allclose(below, problem.mixture.label_mean.double().expand_as(below), atol=1e-9)


@pytest.mark.parametrize(("level", "seen"), [(3.9, 2.0), (4.1, 0.0)])
def test_a_spread_of_nearly_nothing_is_seen_whole_or_not_at_all(level, seen):
    mixture = GaussianMixture(4 * torch.eye(2, 9), torch.tensor([1.0, -1.0]), torch.ones(2) / 2, 1.0)
    problem = UnequalSpread(mixture, torch.tensor([1e-3, 1.0]))
    along = torch.eye(1, 9, dtype=torch.float64).unsqueeze(0)  # the second component lies 4 deviations below its level
    found = spread_gradient(problem, along, torch.full((1, 1), level, dtype=torch.float64))
    assert float(found[0, 0, 0]) == pytest.approx(seen, abs=1e-3)


def test_shares_with_equal_noise_are_those_of_the_xor_mixture():
    both = [share(100, 1.0, 10.0) for share in (equal, lambda *a: xor_share(a[0], a[1], a[2], 0.1, 2.0))]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
    coarse = axis_share(100, 1.0, 1.0, 10.0, 0.1, 2.0)
    assert coarse == pytest.approx(both[1], rel=0.01)
    # A threshold that nothing passes leaves gradients without norm.
    assert axis_share(100, 0.5, 1.0, 1e3, 0.1, 2.0) == 0


def equal(dim: int, deviation: float, threshold: float) -> float:
    return axis_share(dim, deviation, deviation, threshold, 0.1, 2.0, points=1500)


@pytest.mark.parametrize(
    ("deviations", "words"),
    [([1.0, 1.0, 0.0, 1.0], "above 0"), ([1.0, 1.0], "as many"), ([0.5, 0.5, 0.5, 0.5], "the largest")],
)
def test_spreads_that_fit_no_mixture_are_refused(deviations, words):
    with pytest.raises(ValueError, match=words):
        UnequalSpread(GaussianMixture.xor(9, 1.0), torch.tensor(deviations))
