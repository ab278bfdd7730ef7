from __future__ import annotations

import torch

from assay.probes import linear_cka
from assay.studies.universality_tradeoff.problem import LinearTasks
from assay.studies.universality_tradeoff.similarity.arms import encoder_of
from assay.studies.universality_tradeoff.theory import canonical, superposed
from assay.training.seeds import Seeds

SEEDS = Seeds((0,), dtype=torch.float64)


def test_an_encoder_of_some_tasks_has_weight_on_these():
    problem = LinearTasks(2, 4, 3, 1)
    squares = encoder_of(problem, 0, 2).square().diagonal()[: problem.features]
    expected = torch.tensor([1, 1, 0.5, 0.5, 0, 0, 0.5, 0.5], dtype=torch.float64)
    torch.testing.assert_close(squares, expected)


def test_similarity_on_target_data_does_not_see_superposition():
    problem = LinearTasks(2, 5, 3, 2)
    inputs = problem.pairs(SEEDS, "target", 300, task=1)[0][0]
    own = encoder_of(problem, 1)
    apart, together = canonical(problem, (1.0, *[1 / 3] * 3)), superposed(problem)
    found = [linear_cka(inputs @ own.T, inputs @ other.T) for other in (apart, together)]
    assert abs(found[0] - found[1]) < 1e-10
