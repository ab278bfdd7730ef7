from __future__ import annotations

import pytest
import torch

from assay.studies.icl_scale.construction.problem import SparseParity
from assay.studies.icl_scale.parity.problem import read_prompts
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
PROBLEM = SparseParity(2, 1, 0.2)
PROMPTS, EXAMPLES = 20_000, 9


def _from_examples(flipped: float) -> torch.Tensor:
    """u of the first task, from the examples one by one: (prompts, d)."""
    seeds = Seeds((7,), dtype=torch.float64)
    tasks = torch.tensor([0, 1]).expand(1, PROMPTS, 2)
    signs, labels = PROBLEM.examples(seeds, "slow", tasks, EXAMPLES)
    wrong = seeds.uniform("slow flips", PROMPTS, EXAMPLES) < flipped
    read = (torch.where(wrong, -labels, labels).unsqueeze(-1) * signs).mean(2)
    query, _ = PROBLEM.examples(seeds, "slow queries", tasks, 1)
    return (read * query.squeeze(2))[0]


@pytest.mark.parametrize("flipped", [0.0, 0.3, 1.0])
def test_what_is_read_has_the_law_of_sums_over_examples(flipped):
    reads = read_prompts(PROBLEM, SEEDS, "important", PROMPTS, EXAMPLES, flipped)
    fast, slow = reads.products.reshape(-1, 4), _from_examples(flipped)
    for power in (1, 2, 3, 4):
        a, b = fast[:, :2].pow(power).sum(1), slow[:, :2].pow(power).sum(1)
        c, d = fast[:, 2:].pow(power).sum(1), slow[:, 2:].pow(power).sum(1)
        for ours, theirs in ((a, b), (c, d)):
            deviation = (ours.var() / len(ours) + theirs.var() / len(theirs)).sqrt()
            assert abs(float(ours.mean() - theirs.mean())) < 4.5 * float(deviation)


def test_signal_and_noise_are_the_parts_of_what_is_read():
    reads = read_prompts(PROBLEM, SEEDS, "alike", 500, 200_000)
    torch.testing.assert_close(reads.products, reads.signal, atol=0.02, rtol=0)
    off = reads.signal == 0
    torch.testing.assert_close(reads.products[off], reads.noise[off])
    assert int(off.sum(-1).unique()) == 2
    assert float(read_prompts(PROBLEM, SEEDS, "rare", 500, 16).noise.abs().max()) <= 1


def test_queries_are_shared_by_lengths_and_flips():
    one, other = (read_prompts(PROBLEM, SEEDS, "rare", 50, n, flips) for n, flips in ((16, 0.0), (64, 0.5)))
    assert torch.equal(one.labels, other.labels)
    assert torch.equal(one.signal, other.signal)


def test_refusals():
    for examples, flipped in ((0, 0.0), (5, 1.5), (5, -0.1)):
        with pytest.raises(ValueError, match="at least 1"):
            read_prompts(PROBLEM, SEEDS, "rare", 5, examples, flipped)
