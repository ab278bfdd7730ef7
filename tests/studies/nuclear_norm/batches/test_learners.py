from __future__ import annotations

import pytest
import torch

from assay.studies.nuclear_norm.batches import theory
from assay.studies.nuclear_norm.batches.learners import Recipe, keep_largest, train, train_limited
from assay.studies.nuclear_norm.optima.theory import decayed
from assay.studies.nuclear_norm.problem import Environments
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1))
PROBLEM = Environments(20, 4, 0.2)


def test_weight_decay_ends_near_the_population_optimum():
    z = PROBLEM.sample(SEEDS, "training", 4000)
    weights = train(z, SEEDS, Recipe(1000, 300, 0.02, decay=0.1))
    best = decayed(PROBLEM, 0.1)
    assert float((weights[:, :4].mean(1) - best.alpha).abs().max()) < 0.1 * best.alpha
    assert float((weights[:, 4:].mean(1) - best.beta).abs().max()) < 0.2 * best.alpha


def test_many_rows_drop_environmental_features_and_few_do_not():
    z = PROBLEM.sample(SEEDS, "training", 2000)
    many, few = (train(z, SEEDS, Recipe(rows, 300, 0.02, strength=0.1)) for rows in (400, 4))
    shares = [float((w[:, 4:].mean(1) / w[:, :4].mean(1)).mean()) for w in (many, few)]
    assert shares[0] < 0.05 < 0.1 < shares[1]


def test_a_limit_keeps_the_largest_and_they_are_invariant():
    weights = torch.tensor([[3.0, -4.0, 1.0], [0.1, 0.2, -0.3]])
    assert torch.equal(keep_largest(weights, 2), torch.tensor([[3.0, -4.0, 0.0], [0.0, 0.2, -0.3]]))
    z = PROBLEM.sample(SEEDS, "training", 2000)
    found = train_limited(z, 3, steps=40, rate=0.5, decay=0.01)
    assert bool((found[:, 4:] == 0).all())
    assert bool(((found > 0).sum(1) == 3).all())


def test_seeds_keep_apart_and_steps_are_counted():
    seen: list[int] = []
    z = PROBLEM.sample(SEEDS, "training", 100)
    together = train(z, SEEDS, Recipe(20, 5, strength=0.1), seen.append)
    alone = train(z[1:], Seeds((1,)), Recipe(20, 5, strength=0.1))
    torch.testing.assert_close(together[1:], alone, rtol=1e-3, atol=1e-4)
    assert seen == [1, 2, 3, 4, 5]


def test_ratios_of_few_rows():
    problem = Environments(297, 50, 0.45)
    assert theory.few_rows_ratio(problem) == pytest.approx(1.744, abs=1e-3)
    assert theory.needed_ratio(problem) == pytest.approx(4.446, abs=1e-3)
