"""The activation against Monte Carlo and autograd, and the scales at values known by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.studies.feature_emergence import theory


def test_smoothed_activation_against_monte_carlo():
    z = torch.linspace(-1, 2, 13, dtype=torch.float64)
    noise = torch.randn(400_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for s in (0.1, 0.5):
        sampled = theory.truncated_relu(z[:, None] + s * noise).mean(1)
        assert (sampled - theory.smoothed(z, s)).abs().max() < 5 * s / math.sqrt(400_000)


def test_smoothed_slope_is_the_derivative_and_the_limit_is_the_plain_one():
    z = torch.linspace(-1, 2, 31, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(theory.smoothed(z, 0.3).sum(), z)
    assert torch.allclose(slope, theory.smoothed_slope(z, 0.3), atol=1e-12)
    away = z.detach()[((z.detach()) * (z.detach() - 1)).abs() > 0.05]
    assert torch.allclose(theory.smoothed(away, 1e-4), theory.truncated_relu(away), atol=1e-12)
    assert torch.allclose(theory.smoothed_slope(away, 1e-4), theory.smoothed_slope(away, 0.0), atol=1e-12)
    with pytest.raises(ValueError, match="not possible"):
        theory.smoothed(away, -1.0)


@given(st.floats(-3, 3), st.floats(0.01, 2))
def test_smoothed_activation_is_symmetric(z, s):
    point = torch.tensor(z, dtype=torch.float64)
    total = theory.smoothed(point, s) + theory.smoothed(1 - point, s)
    assert float(total) == pytest.approx(1.0, abs=1e-12)


def test_scales_need_a_positive_correlation():
    assert theory.initial_scales(5, 0.25, 5.0) == (0.2, 0.04, 4.0)
    assert theory.first_step_size(5, 300, 0.25, 5.0) == pytest.approx(2.3e-9, rel=0.02)
    for function in (lambda: theory.initial_scales(5, 0.0, 5.0), lambda: theory.first_step_size(5, 300, -0.1, 5.0)):
        with pytest.raises(ValueError, match="γ"):
            function()
