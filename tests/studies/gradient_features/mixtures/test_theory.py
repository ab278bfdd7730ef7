from __future__ import annotations

import math

import pytest
import torch

from assay.studies.gradient_features.mixtures.theory import stated_oracle_loss, xor_oracle_loss
from assay.studies.gradient_features.problem import GaussianMixture
from assay.studies.gradient_features.theory import (
    density,
    mean_excess,
    mixture_oracle,
    safe_oracle_loss,
    upper_tail,
)
from assay.training import Seeds


@pytest.mark.parametrize("tails", [0.3, 0.7, 1.5])
def test_the_exact_loss_of_the_oracle_is_that_of_samples(tails):
    """400,000 samples, within four standard errors. At 0.3 antipodes and the other axis matter as much as noise."""
    problem = GaussianMixture.multi_xor(2, (0.5, 0.5), (1.0, -1.0), norm=4 * tails)
    sample = problem.sample(Seeds((0, 1), dtype=torch.float64), "test", 200_000)
    losses = (1 - sample.labels * mixture_oracle(problem, sample.inputs, tails)).clamp(min=0)
    error = float(losses.std()) / math.sqrt(losses.numel())
    assert float(losses.mean()) == pytest.approx(xor_oracle_loss(tails), abs=4 * error)
    assert 4 * error < 0.05 * xor_oracle_loss(tails)


@pytest.mark.parametrize("tau", [8, 16])
def test_the_exact_loss_lies_between_the_printed_bound_and_the_safe_one(tau):
    for dim in (1e4, 1e8):
        tails = math.sqrt(tau * math.log(dim))
        assert stated_oracle_loss(dim, tau) < xor_oracle_loss(tails) < safe_oracle_loss(4, tails)


def test_tails_by_hand():
    assert upper_tail(0) == 0.5
    assert upper_tail(1.6448536269514722) == pytest.approx(0.05)
    assert density(0) == pytest.approx(1 / math.sqrt(2 * math.pi))
    assert mean_excess(0) == pytest.approx(1 / math.sqrt(2 * math.pi))
    assert mean_excess(-30) == pytest.approx(30)
    assert stated_oracle_loss(math.e, 4) == pytest.approx(3 * math.exp(-4) + 2 * math.exp(-2.6))


def test_knots_at_the_origin_are_refused():
    with pytest.raises(ValueError, match="positive number of deviations"):
        xor_oracle_loss(0)
