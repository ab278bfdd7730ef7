import pytest
import torch

from assay.studies.imbalanced_contrastive.learners import Cells, Contrastive, Encoders
from assay.studies.imbalanced_contrastive.problem import TokenPairs
from assay.studies.imbalanced_contrastive.sweeps.learners import read_out
from assay.training import Seeds

SEEDS = Seeds((0,), dtype=torch.float64)


def test_a_readout_of_perfect_neurons_is_nearly_perfect_and_of_silent_ones_is_the_mean():
    problem = TokenPairs(3, 2, 6, 4, 0.4)
    run, cells = Contrastive(1, 2, 0.1, 1.0, None), Cells([0.2], [0.02], [0.0])
    pure = torch.eye(6, dtype=torch.float64)[None, None]
    silent = torch.zeros(1, 1, 6, dtype=torch.float64)
    good = read_out(problem, cells, SEEDS, Encoders(pure, silent, 4), run, train=600, test=1000)
    assert float(good.cosine) > 0.98
    variance = 5 * 0.4 + 0.6**5  # of the sum of signs, where a sample without features is given one
    assert float(good.error) < 0.05 * variance
    none = read_out(problem, cells, SEEDS, Encoders(pure, silent + 9, 4), run, train=600, test=1000)
    assert float(none.cosine) == 0
    assert float(none.error) == pytest.approx(variance, rel=0.1)
