from __future__ import annotations

import math

import numpy as np
import pytest

from assay.lab import discovery
from assay.studies.looped_transformers.conditions.theory import edge_condition, mean_condition, trial_means


def test_the_edges_of_the_spectrum():
    assert edge_condition(16, 4) == pytest.approx(9.0)
    assert edge_condition(32, 4) == pytest.approx(4.38, abs=0.01)
    with pytest.raises(ValueError, match="n > d"):
        edge_condition(4, 4)


def test_means_over_trials():
    drawn = np.arange(12.0).reshape(2, 6)
    assert trial_means(drawn, 4).tolist() == [[1.5], [7.5]]


def test_the_mean_condition_number_is_that_of_draws():
    """200,000 draws: the standard error is 0.1 % of the mean."""
    for n, d in ((16, 4), (9, 3), (12, 2)):
        drawn = np.random.default_rng(0).standard_normal((200_000, n, d))
        values = np.linalg.eigvalsh(np.swapaxes(drawn, 1, 2) @ drawn)
        kappa = values[:, -1] / values[:, 0]
        assert mean_condition(n, d) == pytest.approx(kappa.mean(), abs=4 * kappa.std() / math.sqrt(len(kappa)))


def test_the_quadrature_has_converged_and_knows_its_limits():
    assert mean_condition(16, 4, nodes=40) == pytest.approx(mean_condition(16, 4, nodes=80), rel=1e-12)
    assert mean_condition(128, 4, nodes=40) == pytest.approx(mean_condition(128, 4, nodes=80), rel=1e-12)
    assert mean_condition(5, 4) == math.inf
    for n, d in ((16, 5), (4, 4), (3, 1)):
        with pytest.raises(ValueError, match="quadrature"):
            mean_condition(n, d)


@pytest.mark.parametrize(("id", "n"), [("C5a", 16), ("C5b", 32), ("C5c", 64), ("C5d", 128)])
def test_the_claims_state_the_exact_mean(id, n):
    claim = discovery.find("looped-transformers").claims[id]
    assert f"{n} examples" in claim.statement
    assert claim.statement.endswith(f"{mean_condition(n, 4):.3f}, within 5 %.")
