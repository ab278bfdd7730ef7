"""The exact bounds of the proofs, along a run."""

import pytest
import torch

from assay.studies.meta_split.learners import SPLITS, Conditions, train
from assay.studies.meta_split.problem import Coupling, Products, SharedFeature
from assay.studies.meta_split.theorems.learners import bound_metrics
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
TASKS = SharedFeature(50, 8, 3, 6, 3).sample(SEEDS)
START = 0.2 * SEEDS.normal("filters", 6, 50)


@pytest.mark.parametrize("split", SPLITS)
def test_exact_bounds_along_a_run(split):
    conditions = Conditions.of([(split, 0.5, 0.3, 4, 0.5)], SEEDS, 6, 3)
    products, coupling = Products.of(TASKS, START), Coupling.of(TASKS, TASKS)
    for look in train(products, coupling, conditions, 40, range(0, 41, 5)):
        found = bound_metrics(look, conditions)
        assert float(found["feature_fall"].max()) <= 1e-15
        assert float(found["feature_inner_excess"].max()) <= 0
        if split == "train-validation":
            assert float(found["validation_excess"].max()) <= 0
