from __future__ import annotations

import torch

from assay.studies.nuclear_norm.plane import theory
from assay.studies.nuclear_norm.plane.learners import Descent, train
from assay.studies.nuclear_norm.problem import Environments
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = Environments(2, 1, 0.2)


def test_weight_decay_and_the_norm_end_near_the_population_optima():
    z = PROBLEM.sample(SEEDS, "training", 4000)
    for recipe, slope in (
        (Descent(400, 0.5, decay=1.0), theory.decayed_slope(PROBLEM, 1.0)),
        (Descent(400, 0.5, strength=0.3), theory.penalised_slope(PROBLEM, 0.3)),
    ):
        v = train(z, SEEDS, recipe).classifier
        assert float((v[:, 1] / v[:, 0] - slope).abs().max()) < 0.08


def test_the_norm_makes_features_rank_one_and_a_free_head_escapes():
    z = PROBLEM.sample(SEEDS, "training", 500)
    fixed = train(z, SEEDS, Descent(300, 0.5, strength=0.1))
    free = train(z, SEEDS, Descent(300, 0.5, strength=0.1, free_head=True))
    assert float(fixed.second_value.max()) < 0.01 < float(train(z, SEEDS, Descent(300, 0.5)).second_value.min())
    torch.testing.assert_close(fixed.head_norm, torch.ones(2, dtype=torch.float64))
    assert bool((free.head_norm > 1.1).all())
    assert bool((free.penalty < fixed.penalty).all())


def test_seeds_keep_apart():
    z = PROBLEM.sample(SEEDS, "training", 100)
    recipe = Descent(20, 0.5, strength=0.1)
    together, alone = train(z, SEEDS, recipe), train(z[1:], Seeds((1,), dtype=torch.float64), recipe)
    torch.testing.assert_close(together.classifier[1:], alone.classifier)
