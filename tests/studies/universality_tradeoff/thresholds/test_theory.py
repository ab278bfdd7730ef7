from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.studies.universality_tradeoff.learners import train_tables
from assay.studies.universality_tradeoff.theory import LOSSES
from assay.studies.universality_tradeoff.thresholds import theory
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2, 3), dtype=torch.float64)
LOGISTIC = LOSSES["logistic"]


def test_the_thresholds_of_the_specification():
    found = [theory.exact_threshold(q) for q in (0.05, 0.1, 0.15, 0.2, 0.24)]
    assert found == pytest.approx([1.190, 0.986, 0.806, 0.589, 0.278], abs=1e-3)
    assert theory.exact_threshold(0.25) == theory.exact_threshold(0.4) == 0.0


@given(share=st.floats(0.001, 0.24))
def test_the_threshold_falls_with_the_share_and_is_where_the_slopes_balance(share):
    norm = theory.exact_threshold(share)
    assert theory.exact_threshold(share * 1.01) < norm
    slopes = [-1 / (1 + math.exp(t)) for t in (2 * norm**2, 0.0)]  # ℓ' at 2B² and at 0
    assert slopes[0] / slopes[1] == pytest.approx(2 * share / (1 - 2 * share), rel=1e-6)


@pytest.mark.parametrize(("multiple", "apart"), [(0.9, False), (1.1, True)])
def test_training_encodes_the_feature_above_the_threshold_only(multiple, apart):
    model, norm = theory.rare_pair(0.1), multiple * theory.exact_threshold(0.1)
    found = train_tables(
        SEEDS.normal("table", 3, 4), lambda t: model.loss(t.unsqueeze(-2), LOGISTIC), radius=norm, steps=1500, rate=0.03
    )
    distance = (found[:, 1] - found[:, 2]).norm(dim=-1) / norm
    assert bool((distance > 0.1).all() if apart else (distance < 0.01).all())


def test_the_construction_keeps_the_norm_and_helps_from_its_threshold_on():
    for share in (0.05, 0.15):
        norm = theory.construction_threshold(share)
        table = theory.with_own_coordinates(norm)
        torch.testing.assert_close(table.norm(dim=-1), torch.full((3, 1), norm, dtype=torch.float64))
        assert theory.construction_gain(share, 1.01 * norm) > 0 > theory.construction_gain(share, 0.99 * norm)
        assert norm > theory.exact_threshold(share)


def test_the_xor_layout_has_its_loss_and_its_accuracies():
    loss = theory.FOUR_STATES.loss(theory.XOR.unsqueeze(1), LOGISTIC)
    assert float(loss) == pytest.approx(theory.XOR_LOSS)
    assert pytest.approx(0.3616496, abs=1e-6) == theory.XOR_LOSS
    assert theory.best_linear_accuracy(theory.XOR, theory.XOR_LABELS, bias=False) == 0.5
    assert theory.best_linear_accuracy(theory.XOR, theory.XOR_LABELS, bias=True) == 0.75
    assert theory.best_linear_accuracy(theory.SEPARABLE, theory.XOR_LABELS, bias=False) == 1.0
    assert float(theory.FOUR_STATES.loss(theory.SEPARABLE.unsqueeze(1), LOGISTIC)) == pytest.approx(theory.XOR_LOSS)


@pytest.mark.parametrize("share", [0.0, 0.5, -0.1])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ValueError, match=r"\(0, 1/2\)"):
        theory.exact_threshold(share)


def test_a_norm_that_is_too_small_for_the_construction_is_refused():
    with pytest.raises(ValueError, match="at least 1/√2"):
        theory.with_own_coordinates(0.5)
