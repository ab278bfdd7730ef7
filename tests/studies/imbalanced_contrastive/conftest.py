from dataclasses import replace

import pytest
import torch

from assay.studies.imbalanced_contrastive.learners import Cells, Contrastive, random_start
from assay.studies.imbalanced_contrastive.problem import TokenPairs
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


@pytest.fixture(scope="session")
def case():
    """Makes encoders with biases, attended views of a small problem, and its cells."""

    def make(attention="uniform", mode="all", bias=0.2, cells=1):
        problem = TokenPairs(3, 2, 8, 3, 0.5, mode)
        run = Contrastive(1, 6, 0.1, 2.0, 0, attention=attention)
        conditions = Cells([0.5] * cells, [0.1] * cells, [0.0] * cells, [0.5] * cells)
        start = random_start(problem, cells, SEEDS, width=6, scale=0.5, attention=attention)
        start = replace(start, biases=bias * torch.linalg.vector_norm(start.weights, dim=-1))
        return start, *run.attended(run.pairs(problem, conditions, SEEDS, "case").next(6)), conditions

    return make
