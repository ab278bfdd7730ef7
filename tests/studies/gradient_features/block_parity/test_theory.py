from __future__ import annotations

import itertools
import math

import pytest
import torch

from assay.studies.gradient_features.block_parity import theory


@pytest.mark.parametrize(("size", "blocks"), [(3, 1), (5, 1), (9, 1), (3, 3), (4, 1), (2, 3)])
def test_the_oracle_is_the_sum_of_parities_on_every_input(size, blocks):
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=size)), dtype=torch.float64)
    points = torch.cartesian_prod(*[torch.arange(len(signs))] * blocks).reshape(-1, blocks)
    z = (signs.sum(1) / math.sqrt(size))[points]
    wanted = signs.prod(1)[points].sum(1)
    assert torch.allclose(theory.oracle(z, size), wanted, atol=1e-9)
    assert torch.allclose(theory.oracle(z, size, theory.bump_knots(size)), wanted, atol=1e-9)
    if blocks % 2 and size % 2:
        labels = wanted.sign()
        assert float((1 - labels * wanted).clamp(min=0).max()) == 0


@pytest.mark.parametrize("size", [3, 5, 7])
def test_the_merged_oracle_has_few_knots_is_odd_and_vanishes_at_zero(size):
    knots, outputs = theory.oracle_knots(size)
    assert len(knots) == size + 3
    assert float(outputs.norm()) == pytest.approx(theory.oracle_norm(size, 1))
    assert len(theory.bump_knots(size)[0]) == 3 * (size + 1)
    z = torch.linspace(-3, 3, 61, dtype=torch.float64).unsqueeze(-1)
    assert torch.allclose(theory.oracle(z, size), -theory.oracle(-z, size), atol=1e-9)
    assert float(theory.oracle(torch.zeros(1, 1).double(), size).abs()) < 1e-9


@pytest.mark.parametrize(("size", "value"), [(5, 0.6875), (7, 0.34375), (9, 0.63671875)])
def test_the_majority_rule_by_enumeration(size, value):
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=size)))
    right = (signs.sum(1).sign() == signs.prod(1)).double().mean()
    assert theory.majority_accuracy(size) == pytest.approx(value)
    assert float(right) == pytest.approx(value)


@pytest.mark.parametrize("blocks", [1, 3, 5])
def test_one_blocks_parity_alone_by_enumeration(blocks):
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=blocks)))
    right = (signs.sum(1).sign() == signs[:, 0]).double().mean()
    assert theory.single_block_accuracy(blocks) == pytest.approx(float(right))


def test_the_lower_bound_is_vacuous_for_large_heads():
    assert theory.fixed_feature_bound(100, 0.0, 5) == 0.5
    assert theory.fixed_feature_bound(512, 100.0, 5) < 0
