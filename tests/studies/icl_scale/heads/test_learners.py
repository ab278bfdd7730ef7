from __future__ import annotations

import pytest
import torch

from assay.studies.icl_scale.construction.problem import SparseParity
from assay.studies.icl_scale.construction.theory import constructed, hinge_loss
from assay.studies.icl_scale.heads.learners import HeadTraining, margins, patterns
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
PROBLEM = SparseParity(2, 1, 0.2, 0.1)


def test_the_loss_is_that_of_the_networks():
    rows, labels, weights = patterns(PROBLEM, SEEDS)
    assert float(weights.sum()) == pytest.approx(1)
    for bits in (1, 2):
        heads = constructed(PROBLEM, bits)
        found = margins(2 * PROBLEM.gamma * heads.diagonals.T, heads.a, rows, labels)
        loss = float(((1 - found).clamp(min=0) * weights).sum())
        exact = 0.9 * hinge_loss(heads, PROBLEM, "important") + 0.1 * hinge_loss(heads, PROBLEM, "rare")
        assert loss == pytest.approx(exact)


def test_training_lowers_the_loss_and_seeds_keep_apart():
    recipe = HeadTraining(6, 150, 3, decay=1e-4)
    rows, labels, weights = patterns(PROBLEM, SEEDS)
    found = recipe.train(PROBLEM, SEEDS)
    losses = ((1 - margins(found, recipe.signs.double(), rows, labels)).clamp(min=0) * weights).sum(-1)
    assert bool((losses.amin(1) < 0.5).all())  # no head at all has a loss of 1
    torch.testing.assert_close(found[1:2], recipe.train(PROBLEM, Seeds((1,), dtype=torch.float64)))


@pytest.mark.parametrize("heads", [0, 3])
def test_odd_numbers_of_heads_are_refused(heads):
    with pytest.raises(ValueError, match="even"):
        HeadTraining(heads, 10, 1)
