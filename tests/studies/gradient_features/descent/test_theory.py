from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.gradient_features.descent.learners import CURVATURE, best_head, descend_head, loss, slope
from assay.studies.gradient_features.descent.theory import (
    descent_bound,
    drift_envelope,
    generalisation_bound,
    second_order_recursion,
    smoothness,
)


def features() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    phi = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    labels = torch.where(phi[:, 0] + 0.8 * torch.randn(60, generator=generator, dtype=torch.float64) > 0, 1.0, -1.0)
    return phi, labels.double()


@pytest.mark.parametrize("kind", CURVATURE)
def test_descent_with_rate_one_over_smoothness_stays_below_its_bound(kind):
    phi, labels = features()
    rate = 1 / smoothness(phi, CURVATURE[kind])
    target = best_head(phi, labels, kind, penalty=1e-6)
    least = loss(phi @ target, labels, kind)
    for step, head in descend_head(phi, labels, kind, rate, 50):
        gap = float(loss(phi @ head, labels, kind) - least)
        assert gap <= descent_bound(torch.zeros(5).double(), target, rate, step)


@pytest.mark.parametrize("kind", CURVATURE)
def test_the_best_head_has_no_gradient_and_slopes_are_autograds(kind):
    phi, labels = features()
    head = best_head(phi, labels, kind, penalty=0.01)
    outputs = (phi @ head).requires_grad_(True)
    loss(outputs, labels, kind).backward()
    assert torch.allclose(outputs.grad * len(labels), slope(outputs.detach(), labels, kind))
    assert float((phi.T @ outputs.grad + 0.01 * head).abs().max()) < 1e-8


@given(rho=st.floats(0.01, 0.5), beta=st.floats(-1, 1), h0=st.floats(-1, 1), h1=st.floats(-1, 1))
@settings(max_examples=30, deadline=None)
def test_the_recursion_has_its_closed_form(rho, beta, h0, h1):
    before, now = h0, h1
    for _ in range(8):
        before, now = now, 2 * now - (1 - rho**2) * before + beta
    assert second_order_recursion(rho, beta, (h0, h1), 9) == pytest.approx(now, rel=1e-6, abs=1e-6)


def test_the_envelope_grows_and_starts_at_rest():
    outputs, reach = torch.tensor([0.0, 1.0]), torch.tensor([2.0, 2.0])
    allowed, drift = drift_envelope(outputs, reach, input_norm=3.0, rate=0.1, steps=3)
    assert [len(allowed), len(drift)] == [4, 4]
    assert drift[1].tolist() == pytest.approx([0.0, 0.3])
    assert allowed[1].tolist() == pytest.approx([0.2, 1.2])
    assert bool((drift[3] > drift[2]).all())


def test_the_generalisation_bound_by_hand():
    bound = generalisation_bound(2.0, torch.tensor([[3.0, 0.0]]), torch.tensor([4.0]), 1.0, 100)
    assert bound == pytest.approx(2 * 2 * 5 / 10)
