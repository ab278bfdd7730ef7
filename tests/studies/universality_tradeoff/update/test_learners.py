from __future__ import annotations

import pytest
import torch

from assay.studies.universality_tradeoff.learners import gram
from assay.studies.universality_tradeoff.problem import LinearTasks
from assay.studies.universality_tradeoff.risk.learners import bounded_least_squares
from assay.studies.universality_tradeoff.theory import canonical, superposed, updated_weight
from assay.studies.universality_tradeoff.update.learners import block_risk, updated
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


@pytest.mark.parametrize(("shared", "relevant", "radius"), [(2, 4, 0.3), (3, 5, 0.5), (1, 5, 5.0)])
def test_the_update_has_the_weights_of_the_formula_and_leaves_other_tasks(shared, relevant, radius):
    problem = LinearTasks(shared, relevant, 4, 2)
    basis = problem.basis(SEEDS)
    start = canonical(problem, (1.0, *[0.25] * 4)) @ basis.mT
    found = gram(updated(problem, SEEDS, start, basis, radius, steps=80, batch=300), basis).diagonal(dim1=1, dim2=2)
    own = problem.own(0)
    private = found[:, own[shared:]].mean(1).sqrt()
    torch.testing.assert_close(
        private, torch.full((2,), updated_weight(problem, radius), dtype=torch.float64), atol=0.01, rtol=0
    )
    others = found[:, relevant : problem.features]
    torch.testing.assert_close(others, torch.full_like(others, 0.25), atol=1e-6, rtol=0)
    torch.testing.assert_close(found[:, :shared], torch.ones_like(found[:, :shared]), atol=0.01, rtol=0)


def test_from_a_superposed_optimum_other_tasks_move_along():
    """Their features share the target's directions, so that the formula, which starts apart, does not hold."""
    problem = LinearTasks(2, 4, 4, 2)
    basis = problem.basis(SEEDS)
    start = superposed(problem) @ basis.mT
    found = gram(updated(problem, SEEDS, start, basis, 0.3, steps=80, batch=300), basis).diagonal(dim1=1, dim2=2)
    formula = updated_weight(problem, 0.3)
    assert float((found[:, 2:4].mean(1).sqrt() - formula).abs().min()) > 0.01


def test_risk_by_the_gram_matrix_is_that_of_the_features():
    scale = torch.tensor([1.0, 1.0, 0.5, 0.5], dtype=torch.float64)
    points, problem = SEEDS.normal("points", 30, 2, 4), LinearTasks(2, 4, 4)
    truth = problem.label_weights(SEEDS, "labels", 0.5, draws=30)
    answers = torch.einsum("sdmr,sdr->sdm", points, truth)
    found = bounded_least_squares(points * scale, answers, 1e3) * scale
    expected = (found - truth).square().sum(-1).mean(1)
    matrix = torch.diag(scale.square()).expand(2, 4, 4)
    torch.testing.assert_close(block_risk(matrix, points, truth), expected)
