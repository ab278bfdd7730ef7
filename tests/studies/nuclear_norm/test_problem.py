from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.nuclear_norm.problem import Environments
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


@settings(max_examples=10, deadline=None)
@given(gamma=st.floats(-0.45, 0.45), outside=st.booleans())
def test_moments_of_samples(gamma, outside):
    problem, n = Environments(5, 2, gamma), 20_000
    z = problem.sample(SEEDS, "z", n, outside=outside).reshape(-1, 5)
    side = Environments(5, 2, -gamma if outside else gamma)
    spread = 5 / (2 * n) ** 0.5  # five standard errors of means whose summands are at most 1
    torch.testing.assert_close(z.mean(0), side.means, rtol=0, atol=spread)
    torch.testing.assert_close(z.T @ z / len(z), side.second_moments, rtol=0, atol=spread)


def test_sign_and_magnitude_are_independent_and_domains_are_alike_without_gamma():
    problem = Environments(3, 1, 0.3)
    z = problem.sample(SEEDS, "z", 20_000)[0]
    assert bool((z[:, 0] >= 0).all())
    agree = (z[:, 1:] > 0).double()
    small = z[:, 1:].abs() < 0.5
    assert abs(float(agree[small].mean() - agree[~small].mean())) < 0.03
    none = Environments(3, 1, 0.0)
    assert torch.equal(none.sample(SEEDS, "z", 50), none.sample(SEEDS, "z", 50, outside=True))


def test_a_seed_draws_the_same_alone():
    problem = Environments(4, 2, 0.2)
    together, alone = problem.sample(SEEDS, "z", 10), problem.sample(Seeds((1,), dtype=torch.float64), "z", 10)
    assert torch.equal(together[1:], alone)


@pytest.mark.parametrize(("dim", "invariant", "gamma"), [(2, 2, 0.1), (2, 0, 0.1), (3, 1, 0.5), (3, 1, -0.5)])
def test_refusals(dim, invariant, gamma):
    with pytest.raises(ValueError, match=r"invariant|between"):
        Environments(dim, invariant, gamma)
