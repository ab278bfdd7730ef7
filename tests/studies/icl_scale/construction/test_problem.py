from __future__ import annotations

import pytest
import torch

from assay.studies.icl_scale.construction.problem import PATTERNS, SparseParity, low_bits_apart
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
PROBLEM = SparseParity(3, 1, 0.2)


def test_task_sets_are_counted():
    d, k = 8, 2
    assert len(PROBLEM.tasks("important")) == k * (k - 1)
    assert len(PROBLEM.tasks("rare")) == d * (d - 1) - k * (k - 1)
    assert len(PROBLEM.tasks("all")) == d * (d - 1)
    alike = PROBLEM.tasks("alike")
    assert len(alike) == d * (d // k - 1)
    assert bool((low_bits_apart(alike, 1) == 0).all())
    assert bool((low_bits_apart(PROBLEM.tasks("important"), 1) == 1).all())
    assert low_bits_apart(torch.tensor([[0, 7], [2, 3]]), 3).tolist() == [3, 1]


def test_examples_follow_the_law_of_the_pair():
    tasks = torch.tensor([1, 6]).expand(2, 1, 2)
    signs, labels = PROBLEM.examples(SEEDS, "e", tasks, 40_000)
    pair = signs[:, 0][..., [1, 6]]
    for pattern, chance in zip(PATTERNS, PROBLEM.probabilities, strict=True):
        share = (pair == pattern).all(-1).double().mean(1)
        assert bool(((share - chance).abs() < 4.5 * (0.25 / 40_000) ** 0.5).all())
    torch.testing.assert_close(labels[:, 0], pair.prod(-1))
    read = (labels.unsqueeze(-1) * signs).mean(2)[:, 0]
    # Each entry is a mean of 40,000 signs, with a deviation of at most 0.005.
    torch.testing.assert_close(read, PROBLEM.reads(torch.tensor([1, 6])).expand(2, 8), atol=0.0225, rtol=0)


def test_queries_have_every_pattern_on_the_pair():
    phi, labels = PROBLEM.queries(torch.tensor([[5, 0]]))
    torch.testing.assert_close(phi[0][:, [5, 0]], PATTERNS)
    assert bool((phi[0][:, [1, 2, 3, 4, 6, 7]] == 1).all())
    assert labels.tolist() == [1, -1, -1, 1]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((2, 3), "at most 2"),
        ((2, 0), "at least 1"),
        ((2, 1, 0.25), "between 0 and 1/4"),
        ((2, 1, 0.0), "between 0 and 1/4"),
        ((2, 1, 0.1, 0.5), "below 1/2"),
        ((2, 2, 0.1, 0.1), "no rare tasks"),
    ],
)
def test_refusals(values, words):
    with pytest.raises(ValueError, match=words):
        SparseParity(*values)


def test_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match="unknown tasks"):
        PROBLEM.tasks("hard")
