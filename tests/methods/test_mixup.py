from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot

from assay.methods import Mixup

INPUTS, LABELS = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 4


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_inputs_and_losses_are_mixed_in_the_same_shares():
    mixed = Mixup(0.4)(INPUTS, LABELS, generator=seeded())
    assert 0 < mixed.share < 1
    assert sorted(mixed.second.tolist()) == sorted(LABELS.tolist())
    logits = torch.randn(8, 4, generator=seeded(1))
    soft = mixed.share * one_hot(mixed.first, 4) + (1 - mixed.share) * one_hot(mixed.second, 4)
    torch.testing.assert_close(mixed.loss(logits), cross_entropy(logits, soft))
    torch.testing.assert_close(mixed.loss(SimpleNamespace(logits=logits)), mixed.loss(logits))
    torch.testing.assert_close(mixed.inputs.sum(0), INPUTS.sum(0))


def test_each_row_is_its_own_mixture():
    inputs = torch.eye(8)
    mixed = Mixup(1.0)(inputs, LABELS, generator=seeded(3))
    for row in range(8):
        other = int(mixed.inputs[row].clone().index_fill_(0, torch.tensor([row]), 0).argmax())
        if mixed.inputs[row, row] != 1:
            assert mixed.inputs[row, other] == pytest.approx(1 - mixed.share)
            assert mixed.second[row] == LABELS[other]


def test_without_mixing_a_batch_is_as_it_was():
    mixed = Mixup(0.0)(INPUTS, LABELS, generator=seeded())
    logits = torch.randn(8, 4)
    assert mixed.inputs is INPUTS
    assert torch.equal(mixed.loss(logits), cross_entropy(logits, LABELS))


def test_the_shares_follow_the_beta_law():
    generator = seeded(5)
    shares = np.asarray([Mixup(0.2)(INPUTS, LABELS, generator=generator).share for _ in range(4000)])
    # Mean 1/2 and variance 1/(4(2α + 1)) = 0.1786; the bounds are five standard errors.
    assert abs(shares.mean() - 0.5) < 5 * math.sqrt(0.1786 / 4000)
    assert abs(shares.var() - 0.1786) < 0.01


def test_draws_come_from_the_generator_alone():
    before = torch.get_rng_state()
    one, other = (Mixup(0.2)(INPUTS, LABELS, generator=seeded(7)) for _ in range(2))
    assert one.share == other.share
    assert torch.equal(one.inputs, other.inputs)
    assert torch.equal(torch.get_rng_state(), before)


def test_mappings_arrays_and_shares_as_labels():
    mixed = Mixup(0.5)({"pixel_values": INPUTS}, LABELS.to(torch.int32), generator=seeded(2))
    same = Mixup(0.5)(INPUTS.numpy(), LABELS.numpy(), generator=seeded(2))
    assert torch.equal(mixed.inputs["pixel_values"], same.inputs)
    soft = Mixup(0.5)(INPUTS, one_hot(LABELS, 4).float(), generator=seeded(2))
    logits = torch.randn(8, 4)
    torch.testing.assert_close(soft.loss(logits), same.loss(logits))


def test_half_precision_stays():
    assert Mixup(0.5)(INPUTS.half(), LABELS, generator=seeded()).inputs.dtype == torch.float16


def test_refusals():
    with pytest.raises(ValueError, match="alpha must"):
        Mixup(-0.1)
    with pytest.raises(ValueError, match="cannot be mixed"):
        Mixup()({"input_ids": torch.ones(8, 3, dtype=torch.long)}, LABELS, generator=seeded())
    with pytest.raises(ValueError, match="same number of samples"):
        Mixup()(INPUTS[:3], LABELS, generator=seeded())
    with pytest.raises(ValueError, match="must be finite"):
        Mixup()(INPUTS * torch.nan, LABELS, generator=seeded())
