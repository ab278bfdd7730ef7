from dataclasses import replace

import torch

from assay.studies.imbalanced_contrastive.convergence.learners import regret_share
from assay.studies.imbalanced_contrastive.learners import Contrastive, random_start
from assay.studies.imbalanced_contrastive.problem import TokenPairs
from assay.training import Seeds

SEEDS = Seeds((0,), dtype=torch.float64)


def test_the_pseudo_loss_is_tau_times_the_loss_convex_and_obeys_its_regret():
    problem = TokenPairs(dim=12)
    start = random_start(problem, 1, SEEDS, width=12, scale=0.2)
    start = replace(start, biases=0.2 * torch.linalg.vector_norm(start.weights, dim=-1))
    found = regret_share(problem, SEEDS, start, Contrastive(8, 16, 0.1, 4.0, None), 0.5)
    assert found["value"] < 1e-12
    assert found["slope"] < 1e-12
    assert found["bend"] <= 1e-12
    assert found["regret"] <= 1
