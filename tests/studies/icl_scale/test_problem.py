from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from assay.studies.icl_scale.problem import InContextRegression, geometric
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)


def test_tokens_have_the_covariance_also_where_it_is_singular():
    problem = InContextRegression((2.0, 0.5, 0.0))
    tokens = problem.tokens(SEEDS, "tokens", 40_000)
    found = tokens.mT @ tokens / 40_000
    # An entry of a sample covariance has a deviation of at most √2·λ₁/√n = 0.014.
    torch.testing.assert_close(found, problem.covariance(SEEDS), atol=0.07, rtol=0)
    outside = tokens @ problem.features(SEEDS)[..., -1:]
    assert float(outside.abs().max()) < 1e-12


def test_features_are_orthonormal_and_each_seeds_own():
    features = InContextRegression((2.0, 1.0, 0.5)).features(SEEDS)
    torch.testing.assert_close(features.mT @ features, torch.eye(3, dtype=torch.float64).expand(3, 3, 3))
    assert not torch.allclose(features[0], features[1])


def test_labels_and_targets_come_from_one_task():
    weights = SEEDS.normal("task", 2)
    prompts = InContextRegression((2.0, 1.0)).sample(SEEDS, "p", 5, 7, weights)
    task = weights[:, None, :, None]
    torch.testing.assert_close(prompts.labels, (prompts.inputs @ task).squeeze(-1))
    torch.testing.assert_close(prompts.targets, (prompts.queries.unsqueeze(-2) @ task).squeeze((-2, -1)))


def test_the_gram_is_that_of_the_embedding_over_the_examples():
    prompts = InContextRegression((2.0, 1.0)).sample(SEEDS, "p", 3, 5)
    rows = torch.cat([prompts.inputs[1, 2], prompts.labels[1, 2, :, None]], 1)
    last = torch.cat([prompts.queries[1, 2], torch.zeros(1, dtype=torch.float64)])
    embedding = torch.cat([rows, last[None]]).T
    torch.testing.assert_close(prompts.gram()[1, 2], embedding @ embedding.T / 5)


def test_flips_are_nested_and_complete():
    prompts = InContextRegression((2.0, 1.0)).sample(SEEDS, "p", 30, 8)
    order = SEEDS.uniform("order", 30, 8).argsort(-1).argsort(-1)
    wrong = [prompts.flipped(order, share).labels != prompts.labels for share in (0.0, 0.25, 0.75, 1.0)]
    assert [int(flips.sum(-1).unique()) for flips in wrong] == [0, 2, 6, 8]
    for fewer, more in pairwise(wrong):
        assert not bool((fewer & ~more).any())


@pytest.mark.parametrize("values", [(), (1.0, 2.0), (1.0, -0.1), (0.0, 0.0), (float("nan"),)])
def test_no_spectrum_is_refused(values):
    with pytest.raises(ValueError, match="eigenvalues"):
        InContextRegression(values)


def test_other_refusals():
    prompts = InContextRegression((1.0,)).sample(SEEDS, "p", 2, 3)
    with pytest.raises(ValueError, match="at least one example"):
        InContextRegression((1.0,)).sample(SEEDS, "p", 2, 0)
    with pytest.raises(ValueError, match="cannot be negative"):
        prompts.noisy(torch.zeros_like(prompts.labels), -1.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        prompts.flipped(torch.zeros(3, 2, 3), 1.5)


def test_geometric_ends_where_it_is_told():
    values = geometric(5, 1.6, 0.1)
    assert values[0] == pytest.approx(1.6)
    assert values[-1] == pytest.approx(0.1)
    assert values[1] / values[0] == pytest.approx(values[3] / values[2])
