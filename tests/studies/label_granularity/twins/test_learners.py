from __future__ import annotations

import pytest
import torch

from assay.studies.label_granularity.learners import Initialisation, Training
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.studies.label_granularity.twins.learners import TWINS, hierarchy_of, twin_errors
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
SMALL = HierarchicalPatches(dim=16, patches=10, subclasses=2, feature_patches=3, noise=0.05, distractors=2)


@pytest.mark.parametrize("labels", TWINS)
def test_twin_labels(labels):
    samples = SMALL.sample(SEEDS, "twin", 6)
    found = hierarchy_of(labels, samples, seed=3)
    classes = {"coarse": 2, "split at random": 8, "mixed": 2}.get(labels, 4)
    assert found.classes == classes
    assert (found.purity == 1) == (labels not in ("random", "mixed"))
    easy, hard = (SMALL.sample(SEEDS, f"test {h}", 2, hard=h) for h in (False, True))
    labelled, wrong = twin_errors(labels, Initialisation(500), Training(SMALL, 4, finite=True), SEEDS, 2, easy, hard)
    assert labelled["classes"].tolist() == [classes, classes]
    assert wrong["easy_error"].shape == (2,)
