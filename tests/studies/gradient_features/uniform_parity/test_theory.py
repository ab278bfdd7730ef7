from __future__ import annotations

import itertools
import math

import pytest
import torch

from assay.studies.gradient_features.learners import RELU
from assay.studies.gradient_features.theory import in_flat_cone, simplified_gradient
from assay.studies.gradient_features.uniform_parity import theory
from assay.studies.gradient_features.uniform_parity.learners import (
    one_threshold_start,
    parity_step,
    sign_start,
    streamed_gradients,
)
from assay.studies.gradient_features.uniform_parity.problem import UniformParity
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


def cube(dim: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product((-1.0, 1.0), repeat=dim)), dtype=torch.float64)


@pytest.mark.parametrize("dim", [5, 9, 13])
def test_coefficients_are_the_walsh_transform_of_majority(dim):
    points = cube(dim)
    majority = points.sum(1).sign()
    for order in range(1, dim + 1, 2):
        expected = float((majority * points[:, :order].prod(1)).mean())
        assert theory.majority_coefficient(order, dim) == pytest.approx(expected, abs=1e-12)
    for order in (3, 5):
        if order + 1 < dim:
            k = order + 1
            ratio = theory.majority_coefficient(k + 1, dim) / theory.majority_coefficient(k - 1, dim)
            assert ratio == pytest.approx(-(k - 1) / (dim - k))


@pytest.mark.parametrize(("dim", "size"), [(11, 4), (9, 2)])
@pytest.mark.parametrize("threshold", [-0.9, 0.0, 0.5])
def test_the_closed_form_is_full_enumeration(dim, size, threshold):
    problem = UniformParity(dim, size)
    inputs = cube(dim).expand(2, -1, -1)
    weights = torch.where(SEEDS.uniform("weights", 6, dim) < 0.5, -1.0, 1.0).double()
    levels = torch.full((2, 6), threshold, dtype=torch.float64)
    counted = simplified_gradient(inputs, problem.labels(inputs), weights, levels)
    assert torch.allclose(counted, theory.exact_gradient(problem, weights), atol=1e-12)


def test_constant_signs_point_at_the_indicator():
    problem = UniformParity(31, 4)
    weights = torch.ones(31).double()
    weights[10:] = -1
    found = theory.exact_gradient(problem, weights)
    cosine = float(found @ problem.features[0].double() / found.norm())
    assert abs(cosine) == pytest.approx(theory.limit_cosine(problem))
    assert theory.limit_cosine(problem) == pytest.approx(0.9608, abs=1e-4)
    off = found / found.norm() * math.copysign(1, cosine) - problem.features[0].double()
    assert float(off.abs().max()) <= math.sqrt(4) / (31 - 4)


def test_exact_gradients_of_constant_signs_lie_in_a_flat_cone():
    """Within √k/(d − k) of the indicator in every coordinate; those of mixed signs on A are not."""
    problem = UniformParity(31, 4)
    weights = torch.ones(2, 31).double()
    weights[1, 0] = -1
    found = theory.exact_gradient(problem, weights)
    features = torch.cat([problem.features, -problem.features]).double()
    inside = in_flat_cone(found, features, math.sqrt(4) / (31 - 4), floor=float(found.norm(dim=-1).min()) / 2)
    assert inside.any(-1).tolist() == [True, False]
    assert int(inside.sum()) == 1


def test_many_samples_approach_the_exact_cosine():
    problem = UniformParity(31, 4)
    assert theory.sampled_cosine(problem, 10**12) == pytest.approx(theory.limit_cosine(problem), abs=1e-4)
    samples = theory.samples_for(problem, 1.0)
    xi = theory.majority_coefficient(3, 31)
    assert samples * xi**2 / 31 == pytest.approx(1, rel=1e-3)
    assert theory.promised_neurons(4) == math.ceil(64 * math.log(80))


@pytest.mark.parametrize(("dim", "size", "words"), [(10, 4, "dimension"), (11, 3, "even"), (3, 4, "dimension")])
def test_parities_without_a_closed_form_are_refused(dim, size, words):
    with pytest.raises(ValueError, match=words):
        UniformParity(dim, size)
    with pytest.raises(ValueError, match="odd s and odd d"):
        theory.majority_coefficient(2, 11)


def test_streamed_gradients_are_those_of_all_samples():
    problem = UniformParity(9, 4)
    start = sign_start(SEEDS, problem, 3)
    samples = list(problem.stream(SEEDS, "gradient", 60_000))
    assert [len(part.labels[0]) for part in samples] == [50_000, 10_000]
    inputs, labels = torch.cat([p.inputs for p in samples], 1), torch.cat([p.labels for p in samples], 1)
    slow = simplified_gradient(inputs, labels, start.weights, -start.biases)
    assert torch.allclose(streamed_gradients(SEEDS, problem, start, 60_000), slow, atol=1e-10)


def test_the_start_has_ladder_thresholds_and_can_do_without_constant_signs():
    problem = UniformParity(9, 2)
    start = sign_start(SEEDS, problem, 200, constant=False)
    assert bool((start.weights[..., :2].sum(-1) == 0).all())
    assert {round(2 * float(b)) for b in start.biases.flatten()} == {-1, 0, 1}
    exact = theory.exact_gradient(problem, start.weights)
    net = parity_step(start, exact, problem)
    assert torch.allclose(net.weights[..., :2].abs(), torch.full((1,), 0.5).double())


@pytest.mark.parametrize(("dim", "size"), [(11, 4), (9, 2), (13, 6)])
@pytest.mark.parametrize("knot", [-0.5, 0.0, 0.7, 1.3])
def test_what_a_neuron_knows_of_the_parity_is_full_enumeration(dim, size, knot):
    problem, points = UniformParity(dim, size), cube(dim)
    weights = torch.ones(dim, dtype=torch.float64)
    weights[:2] = -1  # two signs of A: their product is 1, as those of all of A
    along = theory.exact_gradient(problem, weights)
    values = (points @ along / along.norm() - knot).clamp(min=0)
    counted = float((problem.labels(points) * values).mean())
    assert theory.parity_signal(problem, knot) == pytest.approx(counted, abs=1e-12)


def test_at_the_blind_knot_a_neuron_knows_nothing_and_elsewhere_it_does():
    for problem in (UniformParity(31, 4), UniformParity(73, 6)):
        knot = theory.blind_knot(problem)
        assert 0 < knot < math.sqrt(problem.size)
        assert theory.parity_signal(problem, knot) == pytest.approx(0, abs=1e-9)
        assert abs(theory.parity_signal(problem, 0.0)) > 1e-3
    # Without the coordinates outside A the root is at κ = 4/3 of ⟨w_A, x_A⟩, 2/3 of ⟨ŵ, x⟩.
    assert theory.blind_knot(UniformParity(1001, 4)) == pytest.approx(2 / 3, abs=0.01)
    with pytest.raises(ValueError, match="whatever their threshold"):
        theory.blind_knot(UniformParity(51, 2))


def test_the_other_start_has_thresholds_of_one_size_and_output_zero():
    problem = UniformParity(11, 4)
    start = one_threshold_start(SEEDS, problem, 5, 0.5)
    assert set(start.biases.flatten().tolist()) == {-0.5, 0.5}
    assert set(start.weights.flatten().tolist()) == {-1.0, 1.0}
    assert float(start(cube(11).expand(2, -1, -1), RELU).abs().max()) < 1e-12
    signs = one_threshold_start(SEEDS, problem, 5, 0.5, normal=False)
    assert torch.equal(signs.output, start.output.sign())
    with pytest.raises(ValueError, match="between 0 and 1"):
        one_threshold_start(SEEDS, problem, 5, 1.0)
