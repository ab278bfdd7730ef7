import torch

from assay.studies.imbalanced_contrastive.learners import Cells
from assay.studies.imbalanced_contrastive.problem import TokenPairs
from assay.studies.imbalanced_contrastive.pruning.learners import constructed_start, minority_share
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
