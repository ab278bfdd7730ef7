from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from assay.methods.gradient_bounds import FeatureConstants, gradient_bound, gradient_requirements
from assay.studies.gradient_features.existence.theory import (
    components_of,
    construct,
    head_cost,
    least_loss_without,
    small_opt_upper_bound,
)
from assay.studies.gradient_features.problem import GaussianMixture, LinearData
from assay.training import Seeds


def test_the_constructed_head_is_the_oracle_when_neurons_are_exact():
    directions = torch.eye(2, 5, dtype=torch.float64)
    heights, knot, threshold = torch.tensor([1.5, -0.5]), 2.0, 4.0
    weights = directions.repeat_interleave(3, 0) * threshold / knot
    head = construct(weights, threshold, directions, heights, knot, cone=0.1, tolerance=0.2)
    x = torch.randn(50, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    wanted = (x @ directions.T - knot).clamp(min=0) @ heights.double()
    found = (x @ weights.T - threshold).clamp(min=0) @ head.outputs
    assert torch.allclose(found, wanted, atol=1e-10)
    assert (head.support, head.empty) == (6, 0)
    assert head.bound(1.5, 3.0) == pytest.approx(0, abs=1e-6)


def test_the_bound_holds_for_crooked_neurons():
    generator = torch.Generator().manual_seed(1)
    directions = torch.eye(3, 6, dtype=torch.float64)
    noise = 0.1 * torch.randn(300, 6, generator=generator, dtype=torch.float64)
    scale = 1 + 0.2 * torch.randn(300, 1, generator=generator, dtype=torch.float64)
    weights = (directions.repeat(100, 1) + noise) * scale
    heights, knot = torch.tensor([1.0, -1.0, 1.0]), 1.5
    head = construct(weights, knot, directions, heights, knot, cone=0.1, tolerance=0.3)
    x = torch.randn(2000, 6, generator=generator, dtype=torch.float64) * 2
    gap = (x @ weights.T - knot).clamp(min=0) @ head.outputs - (x @ directions.T - knot).clamp(min=0) @ heights.double()
    assert float(gap.abs().mean()) <= head.bound(1.0, float(x.norm(dim=1).mean()))
    assert 0 < head.width <= 0.1
    assert 0 < head.tolerance <= 0.3


def test_directions_without_neurons_are_counted_and_give_no_nan():
    directions = torch.eye(2, 4, dtype=torch.float64)
    head = construct(directions[:1], 1.0, directions, torch.ones(2), 1.0, cone=0.1, tolerance=0.1)
    assert head.empty == 1
    assert head.served.tolist() == [True, False]
    assert bool(head.outputs.isfinite().all())
    crooked = torch.tensor([[1.0, 0.2, 0.0, 0.0]], dtype=torch.float64)
    one = construct(crooked, 1.0, directions, torch.ones(2), 1.0, cone=0.1, tolerance=0.1)
    all_served = construct(crooked, 1.0, directions[:1], torch.ones(1), 1.0, cone=0.1, tolerance=0.1)
    assert one.bound(1.0, 3.0) == all_served.bound(1.0, 3.0), "terms that no neuron serves are not in the bound"


def two_axes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Projections, labels and knots of an XOR mixture without overlap."""
    rng = np.random.default_rng(0)
    labels = np.repeat([1.0, -1.0], 40)
    z = rng.normal(scale=0.1, size=(80, 2))
    z[:40, 0] += 4 * rng.choice([-1, 1], 40)
    z[40:, 1] += 4 * rng.choice([-1, 1], 40)
    return z, labels, np.linspace(0, 4, 5)


def test_opt_is_zero_where_the_oracle_fits_and_grows_with_fewer_axes_or_smaller_outputs():
    z, labels, knots = two_axes()

    def loss(points, largest):
        return small_opt_upper_bound(points, labels, knots, terms=20, largest=largest, norm=100.0).loss

    assert loss(z, 2.0) == pytest.approx(0, abs=1e-8)
    assert loss(z[:, :1], 2.0) > 0.3
    assert loss(z, 0.05) > 0.3
    assert loss(z, 0.0) == pytest.approx(1)


def test_where_nothing_can_be_learned_only_the_loss_on_other_points_says_so():
    rng = np.random.default_rng(3)
    knots, limits = np.linspace(0, 2, 5), {"terms": 20, "largest": 2.0, "norm": 100.0}
    z, labels = rng.normal(size=(40, 2)), rng.choice([-1.0, 1.0], 40)
    one = small_opt_upper_bound(z[:, :1], labels, knots, **limits)
    two = small_opt_upper_bound(z, labels, knots, **limits)
    assert two.loss < one.loss - 0.05 < 0.95, "each axis of noise is a gain on the points that it was fitted to"
    assert one.loss_on(z[:, :1], labels) == pytest.approx(one.loss)
    others, answers = rng.normal(size=(20_000, 2)), rng.choice([-1.0, 1.0], 20_000)
    # OPT is 1 here, the loss of the output 0.
    assert one.loss_on(others[:, :1], answers) > 1
    assert two.loss_on(others, answers) > 1


def test_opt_of_few_neurons_keeps_its_limits_and_falls_as_they_widen():
    z, labels, knots = two_axes()
    losses = []
    for terms in (1, 2, 3, 4):
        found = small_opt_upper_bound(z, labels, knots, terms=terms, largest=0.5, norm=0.8)
        assert np.count_nonzero(found.outputs) <= terms
        assert np.abs(found.outputs).max() <= 0.5 + 1e-9
        assert np.linalg.norm(found.outputs) <= 0.8 + 1e-9
        signed = np.concatenate([z, -z], 1)
        outputs = np.maximum(signed[:, :, None] - knots, 0).reshape(80, -1) @ found.outputs
        assert found.loss == pytest.approx(np.maximum(1 - labels * outputs, 0).mean())
        losses.append(found.loss)
    # Each of the four ends of the axes needs a neuron of its own.
    assert losses == sorted(losses, reverse=True)
    assert losses[2] > 0.1
    assert losses[3] == pytest.approx(0, abs=1e-6)
    tight = small_opt_upper_bound(z, labels, knots, terms=4, largest=0.5, norm=0.2)
    assert tight.loss > 0.3
    assert np.linalg.norm(tight.outputs) == pytest.approx(0.2, rel=1e-5)


def linear_program(z: np.ndarray, labels: np.ndarray, knots: np.ndarray, largest: float) -> float:
    """The least mean hinge loss with all neurons and no ball, by the solver itself."""
    features = np.maximum(np.concatenate([z, -z], 1)[:, :, None] - knots, 0).reshape(len(labels), -1)
    n, size = features.shape
    rows = np.concatenate([-labels[:, None] * features, -np.eye(n)], 1)
    limits = [(-largest, largest)] * size + [(0, None)] * n
    costs = np.concatenate([np.zeros(size), np.full(n, 1 / n)])
    return float(linprog(costs, A_ub=rows, b_ub=-np.ones(n), bounds=limits).fun)


def test_opt_of_as_many_neurons_as_there_are_is_that_of_the_linear_program():
    rng = np.random.default_rng(1)
    z, labels, knots = rng.normal(size=(60, 2)), rng.choice([-1.0, 1.0], 60), np.array([0.0, 0.5, 1.0])
    full = linear_program(z, labels, knots, 1.0)
    found = small_opt_upper_bound(z, labels, knots, terms=12, largest=1.0, norm=100.0)
    assert found.loss == pytest.approx(full, abs=1e-6)
    assert small_opt_upper_bound(z, labels, knots, terms=12, largest=1.0, norm=0.5).loss > full + 0.01


def test_opt_of_two_neurons_is_no_better_than_the_best_pair():
    rng = np.random.default_rng(2)
    z, labels, knots = rng.normal(size=(40, 2)), rng.choice([-1.0, 1.0], 40), np.array([0.0, 0.7])
    signed = np.concatenate([z, -z], 1)
    features = np.maximum(signed[:, :, None] - knots, 0).reshape(40, -1)
    grid = np.linspace(-1, 1, 41)
    pairs = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    pairs = pairs[np.linalg.norm(pairs, axis=1) <= 1]
    best = min(
        np.maximum(1 - labels[:, None] * features[:, list(two)] @ pairs.T, 0).mean(0).min()
        for two in itertools.combinations(range(8), 2)
    )
    found = small_opt_upper_bound(z, labels, knots, terms=2, largest=1.0, norm=1.0)
    # The grid misses the best pair by at most half a step in each output, times the mean feature.
    assert found.loss >= best - 0.025 * 2 * features.mean(0).max()
    assert found.loss < small_opt_upper_bound(z, labels, knots, terms=1, largest=1.0, norm=1.0).loss


def test_opt_within_a_ball_by_hand():
    """Every input is (1, 1) with the label +1: the output is a_1 + a_2, and at most √2·B_a2."""
    z, labels, knots = np.ones((5, 2)), np.ones(5), np.zeros(1)
    limits = {"largest": 0.3, "norm": 0.3}
    assert small_opt_upper_bound(z, labels, knots, terms=1, **limits).loss == pytest.approx(0.7)
    assert small_opt_upper_bound(z, labels, knots, terms=2, **limits).loss == pytest.approx(1 - 0.3 * 2**0.5, abs=1e-5)
    assert small_opt_upper_bound(z, labels, knots, terms=2, largest=0.3, norm=1.0).loss == pytest.approx(0.4)
    assert small_opt_upper_bound(z, labels, knots, terms=2, largest=0.3, norm=0.0).loss == 1
    with pytest.raises(ValueError, match="one neuron or more"):
        small_opt_upper_bound(z, labels, knots, terms=0, **limits)
    with pytest.raises(ValueError, match="0 or more"):
        small_opt_upper_bound(z, labels, knots, terms=1, largest=-1.0, norm=1.0)


def test_opt_of_linear_data_is_zero_with_two_neurons_of_the_stated_size():
    """r = 2, B_a1 = 1/β and B_a2 = √2/β, as in the linear case; with half of that, inputs at the margin have a loss."""
    problem = LinearData(3, margin=0.5)
    sample = problem.sample(Seeds((0,), dtype=torch.float64), "train", 200)
    along, labels = sample.inputs[0, :, :1].numpy(), sample.labels[0].numpy()
    found = small_opt_upper_bound(along, labels, np.zeros(1), terms=2, largest=2.0, norm=2 * 2**0.5)
    assert found.loss == pytest.approx(0, abs=1e-6)
    assert found.outputs[0] > 0 > found.outputs[1]
    assert small_opt_upper_bound(along, labels, np.zeros(1), terms=1, largest=2.0, norm=2 * 2**0.5).loss > 0.4
    assert small_opt_upper_bound(along, labels, np.zeros(1), terms=2, largest=1.0, norm=2**0.5).loss > 0.05


@pytest.mark.parametrize("change", [{}, {"largest_output": 16.0}, {"terms": 8}, {"floor": 0.1}, {"largest_knot": 3.0}])
def test_the_heads_cost_is_half_the_slack_unless_the_threshold_is_as_printed(change):
    plain = FeatureConstants(0.5, 1.0, 0.01, 2, 2.0, 3.0, 1.0, 10.0, 100.0, 12.0)
    constants = replace(plain, **change)
    asked = gradient_requirements(constants, error=0.1, dim=100)
    slack = gradient_bound(constants, neurons=round(asked.neurons), samples=1).width
    assert head_cost(constants, asked) / slack == pytest.approx(0.5, rel=1e-4)
    # √r·B_a1 in place of √(r·B_a1) divides the threshold by √B_a1.
    printed = replace(asked, threshold=asked.threshold / math.sqrt(constants.largest_output))
    assert head_cost(constants, printed) / slack == pytest.approx(constants.largest_output / 2, rel=1e-4)


def test_components_keep_antipodal_directions_apart():
    directions, labels = components_of(GaussianMixture.xor(5, 1.0))
    assert directions.shape == (4, 5)
    assert labels.tolist() == [1, 1, -1, -1]


def test_what_no_network_sees_it_loses():
    """On pairs of axes that it does not see, any output loses 1 in the mean over both labels."""
    assert least_loss_without((0.5, 0.3, 0.2), 1) == pytest.approx(0.5)
    assert least_loss_without((5.0, 3.0, 2.0), 2) == pytest.approx(0.2)
    assert least_loss_without((0.5, 0.3, 0.2), 3) == 0
    problem = GaussianMixture.multi_xor(8, (0.5, 0.5, 0.3, 0.3, 0.2, 0.2), (1.0, -1.0) * 3, 8.0)
    sample = problem.sample(Seeds((0,)), "train", 4000)
    seen, labels = sample.inputs[0, :, :2].double().numpy(), sample.labels[0].double().numpy()
    knots = np.linspace(-4, 4, 9)
    found = small_opt_upper_bound(seen[:400], labels[:400], knots, terms=8, largest=0.5, norm=10.0)
    assert 0.5 - 0.03 < found.loss_on(seen[400:], labels[400:]) < 0.6, "the bound, and near it"
