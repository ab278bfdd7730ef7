from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from assay.probes.detectors import singleton_detectors
from assay.studies.label_granularity import theory
from assay.studies.label_granularity.learners import Initialisation, Training, residual_for
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.studies.label_granularity.theory import Detectors
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
PRUNED = HierarchicalPatches(dim=32, patches=16, subclasses=3, feature_patches=4, noise=0.001, distractors=2)
INIT = Initialisation(4000)


def test_expected_detectors_against_samples():
    """40 × 24 counts: the mean is within 4 standard errors of the formula."""
    low, high = theory.thresholds(2.5, 24)
    assert low < 2.5 < high
    weights = torch.randn(40, 2000, 24, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    counts = singleton_detectors(weights, torch.eye(24, dtype=torch.float64), high, low).sum(1).double()
    expected = theory.expected_detectors(2000, 2.5, 24)
    assert float(counts.mean()) == pytest.approx(expected, abs=4 * math.sqrt(expected / counts.numel()))


@pytest.mark.parametrize("labels", ["coarse", "fine"])
def test_members_of_a_detector_set_move_alike_and_others_not_at_all(labels):
    problem = replace(PRUNED, noise=1e-7)
    classes = 2 if labels == "coarse" else 6
    init = replace(INIT, prune=False)
    full = init.draw(SEEDS, classes, problem).network
    detectors = Detectors.at(full, problem, labels, init)
    common, subclass = detectors.counts()
    assert int(common.max()) > 1
    assert int(subclass.max()) > 1
    asleep = full.projections(problem.features).amax(-1) < 0.999 * init.scale * init.threshold
    for _, _, update in Training(problem).run(full, SEEDS, 2, residual_for(labels, problem)):
        assert float(detectors.spread(update.movement).max()) < 1e-9
        assert float(update.movement.norm(dim=-1)[asleep].max()) == 0
    # The measure does see a difference where there is one.
    disturbed = update.movement.clone()
    disturbed[0][detectors.common[0].nonzero()[0].tolist()[0], detectors.common[0].nonzero()[0].tolist()[1]] *= 1.5
    assert float(detectors.spread(disturbed).max()) > 0.05


def test_the_least_change_is_that_of_one_detector():
    start = INIT.draw(SEEDS, 6, PRUNED).network
    detectors = Detectors.at(start, PRUNED, "fine", INIT)
    *_, (_, _, update) = Training(PRUNED).run(start, SEEDS, 3, residual_for("fine", PRUNED))
    assert float(detectors.least_change(start, update.network).min()) >= 0
    seed, c, r = detectors.subclass.any(-1).nonzero()[0].tolist()
    weights = update.network.weights.clone()
    weights[seed, c, r, PRUNED.subclass(c // 3, c % 3)] -= 2e-4
    lowered = replace(update.network, weights=weights)
    found = detectors.least_change(update.network, lowered)
    assert float(found[seed]) < -1e-6
    assert float(found[1 - seed]) == 0
    both = zip(detectors.responses(lowered), detectors.responses(update.network), strict=True)
    means = [after - before for after, before in both]
    assert float(found[seed]) < 5 * float(min(change[seed] for change in means))  # the mean hides most of it


def test_critical_number_of_subclasses():
    assert theory.critical_subclasses(HierarchicalPatches()) == pytest.approx(3)
    assert theory.critical_subclasses(HierarchicalPatches(distractors=2)) == pytest.approx(6)
    assert theory.critical_subclasses(HierarchicalPatches(distractors=0)) == math.inf


def test_lemmas_on_normal_vectors():
    norms = torch.randn(5000, 10, generator=torch.Generator().manual_seed(3)).square().sum(1)
    assert float((norms >= 50).double().mean()) <= math.exp(-10) + 1e-3
    pairs = torch.randn(2, 20_000, 30, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    inner = (pairs[0] * pairs[1]).sum(-1)
    assert float((inner >= 0.5 * math.sqrt(30)).double().mean()) >= 0.25


def test_noise_can_wake_a_share_of_the_neurons():
    """200,000 draws at τ = 2: about 4,550 above it, so that the share is known to 5 %."""
    draws = torch.randn(200_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    above, near = int((draws >= 2).sum()), int(((draws >= 1.8) & (draws < 2)).sum())
    assert theory.waking_share(2.0, 0.2) == pytest.approx(near / above, rel=0.1)
    assert theory.waking_share(3.0, 0.0) == 0


def test_k_star_with_and_without_the_falling_bias():
    problem = HierarchicalPatches(feature_patches=6, distractors=2, faint=(0.4, 0.6))
    assert theory.critical_subclasses(problem) == pytest.approx(6)
    assert theory.critical_subclasses(problem, 0.05) == pytest.approx(6 * 0.95 / (2 * 0.45))
    assert math.isinf(theory.critical_subclasses(replace(problem, faint=(0.0, 0.1)), 0.05))
