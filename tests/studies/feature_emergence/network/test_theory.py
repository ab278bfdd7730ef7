"""The theory of stage three at values known by hand, and against random convex functions."""

import pytest
import torch

from assay.studies.feature_emergence.network import theory


def test_online_bound_on_random_convex_functions():
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        steps, dim, eta = 40, 6, 0.02
        slopes = torch.randn(steps, dim, generator=generator, dtype=torch.float64)
        offsets = torch.randn(steps, generator=generator, dtype=torch.float64)
        theta = torch.randn(dim, generator=generator, dtype=torch.float64)
        start, losses, norms = theta.clone(), [], []
        for slope, offset in zip(slopes, offsets, strict=True):
            value = slope @ theta + offset
            gradient = slope * (value > 0)
            losses.append(float(value.clamp(min=0)))
            norms.append(float(gradient.norm()))
            theta = theta - eta * gradient
        reference = torch.randn(dim, generator=generator, dtype=torch.float64)
        compared = float((slopes @ reference + offsets).clamp(min=0).mean())
        bound = theory.online_bound(compared, float(reference.norm()), float(start.norm()), eta, torch.tensor(norms))
        assert sum(losses) / steps <= bound + 1e-12


def test_theory_rate_of_stage_three():
    assert theory.third_stage_rate(5, 300, 600) == pytest.approx(0.00622, rel=1e-2)


def test_the_order_of_the_final_loss_shrinks_with_width_and_time():
    assert theory.final_loss_order(2, 10**12, 10**16) < theory.final_loss_order(2, 10**9, 10**12)
