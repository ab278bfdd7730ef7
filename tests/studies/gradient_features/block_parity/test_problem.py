from __future__ import annotations

import math

import pytest
import torch

from assay.studies.gradient_features.block_parity.problem import BlockParity
from assay.studies.gradient_features.theory import cosines, simplified_gradient
from assay.training import Seeds

SEEDS = Seeds((0, 1))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"blocks": 2}, "number of blocks is odd"),
        ({"size": 4}, "size of a block is odd"),
        ({"blocks": 3, "size": 5}, "do not fit"),
        ({"structured": 0.6}, "no probability"),
        ({"background": 0.6}, "between 0 and 1/2"),
        ({"background": -0.1}, "between 0 and 1/2"),
        ({"rotation": torch.ones(12, 12)}, "orthonormal"),
    ],
)
def test_impossible_parities_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        BlockParity(**{"dim": 12, "size": 3, **changes})


def test_components_blocks_and_labels():
    problem = BlockParity(12, 3, blocks=3, structured=0.1, background=0.2)
    sample = problem.sample(SEEDS, "train", 30_000)
    blocks = sample.inputs[..., :9].reshape(2, -1, 3, 3)
    uniform = sample.components == 6
    assert float(uniform.float().mean()) == pytest.approx(0.4, abs=0.01)
    expected = blocks.prod(-1).sum(-1).sign()
    assert torch.equal(sample.labels[uniform], expected[uniform])
    only = sample.components == 3  # block 1 all −1, the others 0
    assert float(blocks[only][:, 1].mean()) == -1
    assert float(blocks[only][:, [0, 2]].abs().max()) == 0
    assert bool((sample.labels[only] == -1).all())
    rest = sample.inputs[..., 9:]
    assert float((rest == 1).float().mean()) == pytest.approx(0.2, abs=0.01)
    assert float((rest == 0).float().mean()) == pytest.approx(0.6, abs=0.01)


def test_labels_correlate_with_blocks_of_odd_size():
    """E[yφ_l] = 2p_A, against what is printed (0): four standard errors of 60,000 samples."""
    sample = BlockParity(12, 3, blocks=3, structured=0.12, background=0.2).sample(SEEDS, "train", 30_000)
    mean = (sample.labels.unsqueeze(-1) * sample.inputs).mean((0, 1))
    assert float((mean[:9] - 0.24).abs().max()) < 4 / math.sqrt(60_000)
    assert float(mean[9:].abs().max()) < 4 / math.sqrt(60_000)


def test_neurons_that_are_mostly_active_see_the_sum_of_all_blocks():
    """With thresholds below 0 the gradient goes to Σ_j D_j, whose cosine with each feature is 1/√r; with thresholds
    above 0 to a feature of its own."""
    problem = BlockParity(40, 5, blocks=3, structured=0.12, background=0.005)
    sample = problem.sample(SEEDS, "train", 60_000)
    weights = SEEDS.normal("weights", 128, 40)
    for sign, aligned in ((1, True), (-1, False)):
        levels = torch.full((2, 128), sign * 1.2 * problem.spread).to(weights)
        found = cosines(simplified_gradient(sample.inputs, sample.labels, weights, levels), problem.features).abs()
        assert (float((found.amax(-1) > 0.9).float().mean()) > 0.25) == aligned
        if not aligned:
            assert float(found.amax(-1).median()) == pytest.approx(1 / math.sqrt(3), abs=0.02)
            assert float(found.amax(-1).max()) < 0.9


def test_a_rotated_parity_is_the_same_in_other_coordinates():
    turn = torch.linalg.qr(torch.randn(12, 12, generator=torch.Generator().manual_seed(0))).Q
    plain, turned = BlockParity(12, 3), BlockParity(12, 3, rotation=turn)
    a, b = (problem.sample(SEEDS, "train", 50) for problem in (plain, turned))
    assert torch.allclose(b.inputs @ turn, a.inputs, atol=1e-5)
    assert torch.equal(a.labels, b.labels)
    assert torch.allclose(b.inputs @ turned.features.T, a.inputs @ plain.features.T, atol=1e-5)


def test_the_spread_is_that_of_random_projections():
    problem = BlockParity(40, 5, structured=0.0, background=0.25)
    sample = problem.sample(SEEDS, "train", 200)
    weights = SEEDS.normal("weights", 500, 40)
    assert float((sample.inputs @ weights.mT).std()) == pytest.approx(problem.spread, rel=0.05)
    assert not all(line.met for line in problem.assumptions())
