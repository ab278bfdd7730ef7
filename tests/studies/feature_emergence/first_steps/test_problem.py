"""Hidden codes."""

import math

import torch

from assay.studies.feature_emergence.first_steps.problem import CodeProblem
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
N = 20_000


def within(values, expected, deviation, n):
    """Whether sample means lie within five standard errors."""
    return bool(((values - expected).abs() <= 5 * deviation / math.sqrt(n)).all())


def test_codes_label_the_word_and_not_the_count():
    problem = CodeProblem(30, 12, 20)
    words = problem.words(0)
    assert len(torch.unique(words, dim=0)) == 20
    x, y = problem.sample(SEEDS, "train", N)
    assert within((y > 0).double().mean(1), 0.5, 0.5, N)
    truth, signal = problem.truth(SEEDS)[:, 0], (x * y.unsqueeze(-1)).mean(1)
    assert torch.cosine_similarity(truth, signal).min() > 0.97
    assert within(x.square().sum(-1).mean(1), 1.0, 1.0, N)
