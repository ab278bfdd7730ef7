"""The general family against its stated coherence, marginals and moments."""

import math

import pytest
import torch

from assay.studies.feature_emergence.construction.problem import GeneralProblem
from assay.training.seeds import Seeds, stream

SEEDS = Seeds((0, 1), dtype=torch.float64)
N = 20_000


def within(values, expected, deviation, n):
    """Whether sample means lie within five standard errors."""
    return bool(((values - expected).abs() <= 5 * deviation / math.sqrt(n)).all())


def test_general_family_is_incoherent_noisy_and_normalised():
    problem = GeneralProblem(60, 20, 3, (1, 3), noise=0.1, coherence=1.5, tie=0.5)
    dictionary = problem.dictionary(SEEDS)
    overlap = dictionary.mT @ dictionary - torch.eye(20, dtype=torch.float64)
    assert overlap.abs().max() <= 1.5 / math.sqrt(60) + 1e-9
    assert overlap.abs().max() > 0.01
    x, y = problem.sample(SEEDS, "train", N)
    assert x.square().sum(-1).mean() == pytest.approx(1.0, rel=0.05)
    assert set(y.unique().tolist()) == {-1.0, 1.0}
    drawn = problem._patterns(stream(0, "x"), N)
    assert within(drawn.double().mean(0), problem.rates(), 0.5, N)
    pair = torch.corrcoef(drawn[:, 10:12].T)[0, 1]
    assert pair > 0.15


def test_two_gaussians_are_the_general_family_with_one_pattern():
    problem = GeneralProblem(8, 1, 1, (1,), noise=0.3)
    x, y = problem.sample(SEEDS, "train", N)
    pattern = problem.dictionary(SEEDS)[..., 0]
    along = (x * pattern.unsqueeze(1)).sum(-1) * problem.scale
    # Centred at ±1/2 along the pattern, with noise of size 0.3 around it.
    assert within((along * y).mean(1), 0.5, 0.3, N)
    assert (along - y / 2).std(1).tolist() == pytest.approx([0.3, 0.3], rel=0.05)
    assert problem.class_statistics() == (0.5, 1.0, 0.0)
    assert problem.gamma == 0.5


def test_general_class_statistics_against_a_sample():
    problem = GeneralProblem(40, 12, 4, (3, 4), rate=0.6)
    drawn = problem._patterns(stream(0, "x"), 100_000)[:, :4].double()
    labels = torch.where(drawn.sum(1) >= 3, 1.0, -1.0)
    rarest, positive, negative = problem.class_statistics()
    assert min((labels > 0).double().mean(), (labels < 0).double().mean()) == pytest.approx(rarest, abs=0.01)
    assert drawn[labels > 0].mean() == pytest.approx(positive, abs=0.01)
    assert -drawn[labels < 0].mean() == pytest.approx(negative, abs=0.01)
    with pytest.raises(ValueError, match="empty"):
        GeneralProblem(40, 12, 4, ()).class_statistics()
