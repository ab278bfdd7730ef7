"""Growth from tiny filters against the rate formulas."""

import pytest
import torch

from assay.studies.meta_split.growth.learners import early_growth
from assay.studies.meta_split.learners import Conditions, train
from assay.studies.meta_split.problem import Coupling, Products, SharedFeature
from assay.training import Seeds


def test_early_rates_follow_the_formulas():
    problem = SharedFeature(4000, 100, 10, 4, 2, basis="orthogonal")
    seeds = Seeds((0, 1, 2), dtype=torch.float64)
    tasks = problem.sample(seeds)
    start = 1e-8 * seeds.normal("filters", 20, 4000)
    conditions = Conditions.of([("train-train", 0.5, 0.01, 5, 0.5)], seeds, 4, 2)
    first, final = train(Products.of(tasks, start), Coupling.of(tasks, tasks), conditions, 20, [5, 20])
    found = early_growth(first, final, conditions)
    assert float(found.feature.mean()) == pytest.approx(1, abs=0.05)
    assert float(found.outer_noise.mean()) == pytest.approx(1, abs=0.05)
