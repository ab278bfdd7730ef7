from __future__ import annotations

import math

import pytest
import torch

from assay.studies.gradient_features.multi_index.learners import LinearPart, learned_features, squared_error
from assay.studies.gradient_features.multi_index.problem import MultiIndex
from assay.studies.gradient_features.multi_index.theory import noise_fraction, quadratic_gradient, subspace_fraction
from assay.studies.gradient_features.theory import simplified_gradient
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


def test_the_target_has_unit_variance_and_the_stated_hessian():
    problem = MultiIndex(6, curvatures=(1.0, -0.5, 2.0))
    sample = problem.sample(SEEDS, "train", 200_000)
    assert float(sample.labels.mean()) == pytest.approx(0, abs=0.02)
    assert float(sample.labels.square().mean()) == pytest.approx(1, abs=0.05)
    x = torch.zeros(6, dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda v: problem.target(v.unsqueeze(0))[0], x)
    assert torch.allclose(hessian, problem.hessian, atol=1e-6)  # at 0 the cubic part has none
    assert int(torch.linalg.matrix_rank(problem.hessian)) == 3


def test_the_quadratic_gradient_against_samples():
    """200,000 samples: every coordinate within 5 standard errors."""
    problem = MultiIndex(5, curvatures=(1.0, -0.5, 2.0), quadratic=1.0)
    sample = problem.sample(SEEDS, "train", 200_000)
    weights = SEEDS.normal("weights", 4, 5)
    exact = quadratic_gradient(problem.hessian, weights)
    found = simplified_gradient(sample.inputs, sample.labels, weights, torch.zeros(2, 4).double())
    error = float((sample.labels.unsqueeze(-1) * sample.inputs).square().mean((0, 1)).max().sqrt()) / math.sqrt(200_000)
    assert float((found - exact).abs().max()) < 5 * error


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quadratic": 0.0}, "rank deficient"),
        ({"curvatures": (1.0, 0.0, 1.0)}, "rank deficient"),
        ({"dim": 3}, "4 dimensions"),
        ({"quadratic": 1.5}, "between 0 and 1"),
    ],
)
def test_targets_without_gradient_features_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        MultiIndex(**{"dim": 8, **changes})


def test_a_lenient_target_reports_its_rank():
    report = MultiIndex(50, quadratic=0.0, strict=False).assumptions()
    assert [line.met for line in report] == [False, False]
    assert all(line.met for line in MultiIndex(50).assumptions())


def test_the_linear_part_is_subtracted_and_added_back():
    problem = MultiIndex(5)
    sample = problem.sample(SEEDS, "train", 4000)
    shifted = type(sample)(sample.inputs, sample.labels + 2 + 3 * sample.inputs[..., 4], sample.components)
    linear = LinearPart.of(shifted)
    assert float((linear.mean - 2).abs().max()) < 0.3
    assert float((linear.slope[:, 4] - 3).abs().max()) < 0.3
    features, directions = learned_features(SEEDS, shifted, 40)
    assert float(subspace_fraction(directions).median()) > 0.8
    test = problem.sample(SEEDS, "test", 1000)
    shifted_test = type(test)(test.inputs, test.labels + 2 + 3 * test.inputs[..., 4], test.components)
    assert float(squared_error(features, shifted, shifted_test).max()) < 0.6


def test_noise_prefers_the_directions_of_the_label():
    assert noise_fraction(50) == pytest.approx(math.sqrt(9 / 56))
    vectors = torch.tensor([[3.0, 0.0, 0.0, 4.0]])
    assert float(subspace_fraction(vectors)) == pytest.approx(0.6)
