from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from assay.studies.universality_tradeoff.problem import LinearTasks
from assay.studies.universality_tradeoff.risk.learners import bounded_least_squares
from assay.studies.universality_tradeoff.theory import canonical, predictor_norm, superposed
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


@pytest.mark.parametrize(("rows", "radius"), [(12, 0.4), (12, 50.0), (3, 0.2), (3, 50.0)])
def test_least_squares_under_a_norm_bound_agrees_with_a_generic_solver(rows, radius):
    features, labels = SEEDS.normal("features", rows, 5), SEEDS.normal("labels", rows)
    found = bounded_least_squares(features, labels, radius)
    assert bool((found.norm(dim=-1) <= radius * (1 + 1e-6)).all())
    for x, y, own in zip(features.numpy(), labels.numpy(), found, strict=True):
        bound = {"type": "ineq", "fun": lambda u: radius**2 - u @ u}
        best = minimize(lambda u, x=x, y=y: np.sum((x @ u - y) ** 2), np.zeros(5), constraints=[bound], tol=1e-12)
        assert float(np.sum((x @ own.numpy() - y) ** 2)) <= best.fun + 1e-5


def test_where_it_fits_it_is_the_smallest_interpolant():
    features, labels = SEEDS.normal("features", 4, 3, 6), SEEDS.normal("labels", 4, 3)
    found = bounded_least_squares(features, labels, 1e3)
    smallest = (torch.linalg.pinv(features) @ labels.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(found, smallest)


def test_the_true_predictor_always_fits_so_that_noiseless_labels_are_interpolated():
    problem = LinearTasks(3, 6, 4)
    scale = torch.tensor([1.0] * 3 + [0.5] * 3, dtype=torch.float64)
    truth = problem.label_weights(SEEDS, "labels", 0.5, draws=20)
    points = SEEDS.normal("points", 20, 4, 6)
    answers = torch.einsum("sdmr,sdr->sdm", points, truth)
    found = bounded_least_squares(points * scale, answers, predictor_norm(1.0, 0.25, 0.5, 0.5))
    torch.testing.assert_close(torch.einsum("sdmr,sdr->sdm", points * scale, found), answers)


@pytest.mark.parametrize("build", ["canonical", "superposed"])
def test_risk_depends_on_the_block_of_the_task_alone(build):
    """The full encoder, whichever optimum, gives the predictor of the block's coordinates."""
    problem = LinearTasks(2, 5, 3, 2)
    encoder = canonical(problem, (1.0, *[1 / 3] * 3)) if build == "canonical" else superposed(problem)
    truth = problem.label_weights(SEEDS, "labels", 0.5, draws=1)[:, 0]
    z = problem.pairs(SEEDS, "points", 3, task=2)[0]
    answers = torch.einsum("smr,sr->sm", z[..., problem.own(2)], truth)
    whole = bounded_least_squares(z @ encoder.T, answers, 1e3) @ encoder
    scale = torch.tensor([1.0] * 2 + [3**-0.5] * 3, dtype=torch.float64)
    reduced = bounded_least_squares(z[..., problem.own(2)] * scale, answers, 1e3) * scale
    torch.testing.assert_close(whole[:, problem.own(2)], reduced)
