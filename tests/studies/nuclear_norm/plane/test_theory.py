from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.nuclear_norm.plane import theory
from assay.studies.nuclear_norm.problem import Environments
from assay.training.seeds import Seeds


@settings(max_examples=15, deadline=None)
@given(gamma=st.floats(-0.4, 0.45), slope=st.floats(-1, 1), outside=st.booleans())
def test_accuracy_against_samples(gamma, slope, outside):
    problem, n = Environments(2, 1, gamma), 40_000
    z = problem.sample(Seeds((0,), dtype=torch.float64), "z", n, outside=outside)[0]
    found = float((z[:, 0] + slope * z[:, 1] >= 0).double().mean())
    assert theory.accuracy(problem, slope, outside=outside) == pytest.approx(found, abs=2.5 / n**0.5)


@pytest.mark.parametrize(
    ("gamma", "decay", "slope"), [(0.2, 0.01, 0.169), (0.2, 0.1, 0.288), (0.2, 1.0, 0.380), (0.4, 1.0, 0.785)]
)
def test_slopes_under_weight_decay(gamma, decay, slope):
    assert theory.decayed_slope(Environments(2, 1, gamma), decay) == pytest.approx(slope, abs=5e-3)


@pytest.mark.parametrize(
    ("gamma", "strength", "slope"), [(0.2, 0.02, 0.079), (0.2, 0.1, 0.109), (0.4, 0.02, 0.253), (0.4, 0.4, 0.388)]
)
def test_slopes_under_the_nuclear_norm(gamma, strength, slope):
    assert theory.penalised_slope(Environments(2, 1, gamma), strength) == pytest.approx(slope, abs=5e-3)


def test_limits_of_strong_penalties():
    problem = Environments(2, 1, 0.2)
    decayed, penalised = theory.strong_slopes(problem)
    assert theory.decayed_slope(problem, 1000.0) == pytest.approx(decayed, rel=1e-2)
    limit = theory.vanishing(problem)
    assert limit == pytest.approx(0.435, abs=1e-3)
    assert theory.penalised_slope(problem, 0.98 * limit) == pytest.approx(penalised, rel=2e-2)
    with pytest.raises(ValueError, match="nothing is learned"):
        theory.penalised_slope(problem, limit)


def test_printed_accuracies_in_terms_of_slopes():
    problem = Environments(2, 1, 0.2)
    assert theory.accuracy(problem, 0.686, outside=True) == pytest.approx(0.76, abs=1e-3)
    assert theory.accuracy(problem, 0.686) == pytest.approx(0.897, abs=1e-3)
