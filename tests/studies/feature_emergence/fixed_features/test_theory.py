"""Bounds and reference accuracies against enumeration and values known by hand."""

import itertools
import math

import pytest
import torch

from assay.studies.feature_emergence.fixed_features import theory
from assay.studies.feature_emergence.problem import PatternProblem, label_counts


def test_parities_are_orthogonal_and_bessel_holds():
    D, k, N = 10, 3, 40
    bits = torch.tensor(list(itertools.product([0, 1], repeat=D)), dtype=torch.float64)
    sets = list(itertools.combinations(range(D), k))
    parities = torch.stack([1 - 2 * (bits[:, list(s)].sum(1) % 2) for s in sets], 1)
    gram = parities.T @ parities / len(bits)
    assert torch.equal(gram, torch.eye(len(sets), dtype=torch.float64))
    features = torch.rand(len(bits), N, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2 - 1
    average = theory.bessel_average(features, parities)
    assert 0 < float(average) <= N / math.comb(D, k)
    # The parities themselves as features reach the bound.
    assert float(theory.bessel_average(parities[:, :N], parities)) == pytest.approx(N / len(sets))
    with pytest.raises(ValueError, match=r"\[−1, 1\]"):
        theory.bessel_average(2 * parities, parities)


def test_bounds_at_the_default_sizes():
    assert theory.fixed_feature_bound(0.5, 600, 1.0, 5, 100) < 0
    assert theory.bessel_bound(0.5, 600, 1.0, 5, 100) == pytest.approx(0.5 * (1 - 0.002823), rel=1e-3)
    assert theory.query_bound(100, 5) == pytest.approx(211, abs=1)
    with pytest.raises(ValueError, match="odd k"):
        theory.fixed_feature_bound(0.5, 600, 1.0, 4, 100)
    with pytest.raises(ValueError, match="odd k"):
        theory.fixed_feature_bound(0.5, 600, 1.0, 5, 50)


@pytest.mark.parametrize(("k", "best"), [(3, 0.8125), (5, 0.84375), (7, 0.8086)])
def test_reference_accuracies(k, best):
    problem = PatternProblem(50, 40, k, label_counts("parity", k))
    labels = problem.labels_of(torch.arange(k + 1))
    assert theory.count_threshold_accuracy(problem.count_law, labels) == pytest.approx(best, abs=1e-4)
    uniform = PatternProblem(50, 40, 5, label_counts("parity", 5), "uniform")
    assert theory.count_threshold_accuracy(uniform.count_law, uniform.labels_of(torch.arange(6))) == 22 / 32
    assert theory.structured_part_accuracy(0.5) == 0.75
