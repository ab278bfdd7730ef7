import torch

from assay.studies.imbalanced_contrastive.learners import Cells
from assay.studies.imbalanced_contrastive.problem import TokenPairs
from assay.studies.imbalanced_contrastive.pruning.learners import (
    constructed_start,
    minority_share,
    own_neurons,
)
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
SMALL = TokenPairs(3, 2, 8, 3, 0.5)


def test_the_constructed_state_is_pure_with_small_rare_neurons():
    start = constructed_start(SMALL, 2, SEEDS, per_feature=3, scale=0.7, rare_share=0.5, bias=0.2)
    own = start.weights.unflatten(2, (5, 3)).diagonal(dim1=2, dim2=4)  # (seeds, cells, per feature, features)
    expected = torch.tensor([0.7] * 3 + [0.35] * 2, dtype=torch.float64).expand(2, 2, 3, -1)
    torch.testing.assert_close(own, expected)
    assert (start.weights != 0).sum() == 2 * 2 * 15
    mask = Cells([1.0], [0.0], [0.0], [6 / 15]).masks(start.weights[:, :1])
    assert (minority_share(mask, SMALL) == 1).all()


def test_own_neurons_have_a_rare_feature_and_no_other():
    weights = constructed_start(SMALL, 1, SEEDS, per_feature=3, scale=0.7, rare_share=0.5, bias=0.2).weights
    assert (own_neurons(weights, SMALL) == 6).all()
    weights[0, 0, -1, 0] = 0.3  # a neuron of the last feature that has the first as well
    weights[1, 0, 0, 0] = torch.nan
    found = own_neurons(weights, SMALL)
    assert found[0, 0] == 5
    assert found[1, 0].isnan()
