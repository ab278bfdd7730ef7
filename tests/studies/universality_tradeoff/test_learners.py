from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.universality_tradeoff.learners import LinearPretraining, gram, into_norm_class, near, train_tables
from assay.studies.universality_tradeoff.problem import LinearTasks
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(0.05, 5), budget=st.floats(0.5, 4), seed=st.integers(0, 50))
def test_the_projection_is_feasible_idempotent_and_nearest(scale, budget, seed):
    draw = torch.Generator().manual_seed(seed)
    weights = scale * torch.randn(4, 6, generator=draw).double()
    found = into_norm_class(weights, budget)
    assert float(torch.linalg.matrix_norm(found, 2)) <= 1 + 1e-9
    assert float(found.square().sum()) <= budget + 1e-9
    torch.testing.assert_close(into_norm_class(found, budget), found, atol=1e-9, rtol=0)
    distance = (weights - found).norm()
    for _ in range(20):  # no other member of the class is nearer
        other = into_norm_class(found + 0.3 * torch.randn(4, 6, generator=draw).double(), budget)
        assert float((weights - other).norm()) >= float(distance) - 1e-9
    # The obtuse angle of projections onto convex sets.
    other = into_norm_class(torch.randn(4, 6, generator=draw).double(), budget)
    assert float(((weights - found) * (other - found)).sum()) <= 1e-7


def test_the_projection_shrinks_no_distance_between_members_and_treats_seeds_alone():
    weights = SEEDS.normal("weights", 4, 6)
    together = into_norm_class(weights, 2.0)
    for at in range(3):
        torch.testing.assert_close(into_norm_class(weights[at], 2.0), together[at])
    first, second = SEEDS.normal("a", 4, 6), SEEDS.normal("b", 4, 6)
    moved = (into_norm_class(first, 2.0) - into_norm_class(second, 2.0)).norm(dim=(1, 2))
    assert bool((moved <= (first - second).norm(dim=(1, 2)) + 1e-9).all())


def test_near_keeps_both_bounds():
    centre = into_norm_class(SEEDS.normal("centre", 4, 6), 3.0)
    found = near(centre + SEEDS.normal("away", 4, 6), centre, 0.5)
    assert bool((torch.linalg.matrix_norm(found, 2) <= 1 + 1e-9).all())
    assert bool(((found - centre).norm(dim=(1, 2)) <= 0.5 + 1e-9).all())
    torch.testing.assert_close(near(centre, centre, 0.0), centre)


def test_training_on_a_mixture_finds_the_weights_by_block():
    problem = LinearTasks(2, 4, 3, 2)
    seeds = Seeds((0, 1))
    weights = LinearPretraining(300, 500).train(problem, seeds)
    found = gram(weights, problem.basis(seeds)).diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(found[:, :2], torch.ones(2, 2), atol=0.05, rtol=0)
    private = found[:, 2:8].reshape(2, 3, 2).mean(2)
    torch.testing.assert_close(private, torch.full((2, 3), 1 / 3), atol=0.08, rtol=0)
    assert float(found[:, 8:].max()) < 0.01


def test_tables_keep_their_norm_and_do_not_meet():
    start = SEEDS.normal("table", 5, 4)

    def objective(table: torch.Tensor) -> torch.Tensor:
        return (table @ table.mT).sum((-2, -1))

    together = train_tables(start, objective, radius=1.5, steps=50, rate=0.05)
    torch.testing.assert_close(together.norm(dim=-1), torch.full((3, 5), 1.5, dtype=torch.float64))
    alone = train_tables(start[1:2], objective, radius=1.5, steps=50, rate=0.05)
    torch.testing.assert_close(alone[0], together[1])
    assert float(objective(together).max()) < float(objective(1.5 * torch.nn.functional.normalize(start, dim=-1)).min())


@pytest.mark.parametrize("task", [None, 1])
def test_a_seed_trains_alone_as_in_company(task):
    problem, recipe = LinearTasks(1, 3, 2, 1), LinearPretraining(20, 50)
    company = recipe.train(problem, SEEDS, task=task)
    alone = recipe.train(problem, Seeds((1,), dtype=torch.float64), task=task)
    torch.testing.assert_close(alone[0], company[1], atol=1e-6, rtol=0)
