"""Gaussian clusters."""

import pytest
import torch

from assay.studies.feature_emergence.clusters.problem import GaussianMixture
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


def test_gaussian_mixture_centres_and_noise():
    problem = GaussianMixture(20, 3, 0.5)
    x, y = problem.sample(SEEDS, "train", 2000)
    centres = problem.truth(SEEDS)
    assert centres.shape == (2, 8, 20)
    nearest = torch.cdist(x, centres).argmin(-1)
    signs = (centres @ problem.directions(SEEDS)).prod(-1).sign()
    assert (signs.gather(1, nearest) == y).double().mean() > 0.99
    residual = x - centres.gather(1, nearest.unsqueeze(-1).expand_as(x))
    assert residual.square().sum(-1).mean() == pytest.approx(0.25 * 3, rel=0.05)
