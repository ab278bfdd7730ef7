from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.studies.label_granularity.invariants.learners import invariants_over
from assay.studies.label_granularity.learners import Initialisation, TheorySGD
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
PRUNED = HierarchicalPatches(dim=32, patches=16, subclasses=3, feature_patches=4, noise=0.001, distractors=2)
INIT = Initialisation(1500, prune=False)


@pytest.mark.parametrize("labels", ["coarse", "fine"])
def test_pruned_and_full_networks_agree_and_the_invariants_hold(labels):
    found = invariants_over(PRUNED, INIT, TheorySGD(0.05, 0.05), SEEDS, 6, labels)
    for name in ("noise_fires", "unaligned_fires", "bias_rises"):
        assert float(found[name].max()) == 0, name
    assert float(found["near_threshold_fires"].min()) >= 0
    assert float(found["pruned_deviation"].max()) < 1e-9
    assert float(found["foreign_rise"].max()) < 1e-9


def test_the_counters_of_the_invariants_can_count():
    loud, init = replace(PRUNED, noise=0.3), replace(INIT, neurons=300, threshold=1.0, slack=0.0)
    found = invariants_over(loud, init, TheorySGD(0.5, 0.0), SEEDS, 4, "coarse")
    assert float(found["noise_fires"].min()) > 0
    assert float(found["unaligned_fires"].min()) > 0
