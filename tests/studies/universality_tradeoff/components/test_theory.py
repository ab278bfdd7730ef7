from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import normalize

from assay.studies.universality_tradeoff.components.learners import covariance, principal, train_projection
from assay.studies.universality_tradeoff.components.theory import (
    captured,
    hinge_counterexample,
    repaired,
    smoothed_loss,
)
from assay.studies.universality_tradeoff.problem import FiniteModel
from assay.studies.universality_tradeoff.theory import LOSSES
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
MODEL = FiniteModel((0.5, 0.3, 0.2), (0.6, 0.4))


def test_loss_and_gradient_are_those_of_principal_components():
    table = SEEDS.normal("table", 3, 2, 4).requires_grad_()
    loss, spread = MODEL.loss(table, LOSSES["linear"]), MODEL.spread(table)
    torch.testing.assert_close(loss, -spread)
    slopes = [torch.autograd.grad(value.sum(), table)[0] for value in (loss, -spread)]
    torch.testing.assert_close(*slopes)


@pytest.mark.parametrize("name", list(LOSSES))
def test_averaging_and_repairing_never_raise_the_loss(name):
    table, loss = 2 * normalize(SEEDS.normal("table", 20, 3, 2, 4), dim=-1), LOSSES[name]
    averaged = MODEL.averaged(table).unsqueeze(-2).expand_as(table)
    smooth = smoothed_loss(MODEL, table, loss)
    torch.testing.assert_close(MODEL.loss(averaged, loss), smooth)
    assert bool((MODEL.loss(table, loss) >= smooth - 1e-12).all())
    whole = repaired(MODEL, table, 2.0)
    torch.testing.assert_close(whole.norm(dim=-1), torch.full((3, 20, 3, 2), 2.0, dtype=torch.float64))
    assert bool((MODEL.loss(whole, loss) <= smooth + 1e-12).all())
    assert float(MODEL.variation(whole).max()) < 1e-20


@pytest.mark.parametrize(("angle", "equal"), [(0.3, True), (1.04, True), (1.3, False)])
def test_the_hinge_loss_is_blind_up_to_sixty_degrees(angle, equal):
    model, table = hinge_counterexample(angle)
    torch.testing.assert_close(table.norm(dim=-1), torch.full((2, 2), math.sqrt(2), dtype=torch.float64))
    difference = float(model.loss(table, LOSSES["hinge"]) - model.loss(hinge_counterexample(0.0)[1], LOSSES["hinge"]))
    assert (abs(difference) < 1e-12) == equal
    # The bound that no representation is below: pairs of equal z_R have the mean margin 0.
    assert float(model.loss(table, LOSSES["hinge"])) >= 0.5 - 1e-12
    assert float(model.variation(table)) > 0.01


def test_the_captured_share_is_one_for_the_components_themselves():
    points = SEEDS.normal("points", 6, 5)
    matrix = covariance(points, torch.full((6,), 1 / 6, dtype=torch.float64))
    torch.testing.assert_close(matrix, torch.stack([torch.cov(each.T, correction=0) for each in points]))
    torch.testing.assert_close(captured(principal(matrix, 2), matrix), torch.ones(3, dtype=torch.float64))
    other = torch.linalg.qr(SEEDS.normal("rows", 5, 2))[0].mT
    assert bool((captured(other, matrix) < 1).all())


def test_training_finds_the_components_of_averages_and_not_of_inputs():
    inputs = MODEL.inputs(SEEDS, "rotation")
    weights = train_projection(MODEL, inputs, SEEDS, outputs=1, steps=300, batch=300, rate=1.0)
    torch.testing.assert_close(weights.norm(dim=-1), torch.ones(3, 1, dtype=torch.float64))
    p, q = MODEL.shares(inputs)
    averaged = covariance(MODEL.averaged(inputs), p)
    raw = covariance(inputs.flatten(1, 2), torch.outer(p, q).flatten())
    assert float(captured(weights, averaged).min()) > 0.9
    assert float(captured(principal(raw, 1), averaged).mean()) < 0.7
