from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.studies.gradient_features.existence.theory import components_of, construct, opt_upper_bound
from assay.studies.gradient_features.problem import GaussianMixture


def test_the_constructed_head_is_the_oracle_when_neurons_are_exact():
    directions = torch.eye(2, 5, dtype=torch.float64)
    heights, knot, threshold = torch.tensor([1.5, -0.5]), 2.0, 4.0
    weights = directions.repeat_interleave(3, 0) * threshold / knot
    head = construct(weights, threshold, directions, heights, knot, cone=0.1, tolerance=0.2)
    x = torch.randn(50, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    wanted = (x @ directions.T - knot).clamp(min=0) @ heights.double()
    found = (x @ weights.T - threshold).clamp(min=0) @ head.outputs
    assert torch.allclose(found, wanted, atol=1e-10)
    assert (head.support, head.empty) == (6, 0)
    assert head.bound(2, 1.5, 3.0) == pytest.approx(0, abs=1e-6)


def test_the_bound_holds_for_crooked_neurons():
    generator = torch.Generator().manual_seed(1)
    directions = torch.eye(3, 6, dtype=torch.float64)
    noise = 0.1 * torch.randn(300, 6, generator=generator, dtype=torch.float64)
    scale = 1 + 0.2 * torch.randn(300, 1, generator=generator, dtype=torch.float64)
    weights = (directions.repeat(100, 1) + noise) * scale
    heights, knot = torch.tensor([1.0, -1.0, 1.0]), 1.5
    head = construct(weights, knot, directions, heights, knot, cone=0.1, tolerance=0.3)
    x = torch.randn(2000, 6, generator=generator, dtype=torch.float64) * 2
    gap = (x @ weights.T - knot).clamp(min=0) @ head.outputs - (x @ directions.T - knot).clamp(min=0) @ heights.double()
    assert float(gap.abs().mean()) <= head.bound(3, 1.0, float(x.norm(dim=1).mean()))
    assert 0 < head.width <= 0.1
    assert 0 < head.tolerance <= 0.3


def test_directions_without_neurons_are_counted_and_give_no_nan():
    directions = torch.eye(2, 4, dtype=torch.float64)
    head = construct(directions[:1], 1.0, directions, torch.ones(2), 1.0, cone=0.1, tolerance=0.1)
    assert head.empty == 1
    assert bool(head.outputs.isfinite().all())


def test_opt_is_zero_where_the_oracle_fits_and_grows_with_fewer_axes_or_smaller_outputs():
    rng = np.random.default_rng(0)
    labels = np.repeat([1.0, -1.0], 40)
    z = rng.normal(scale=0.1, size=(80, 2))
    z[:40, 0] += 4 * rng.choice([-1, 1], 40)
    z[40:, 1] += 4 * rng.choice([-1, 1], 40)
    knots = np.linspace(0, 4, 5)
    assert opt_upper_bound(z, labels, knots, 2.0) == pytest.approx(0, abs=1e-8)
    assert opt_upper_bound(z[:, :1], labels, knots, 2.0) > 0.3
    assert opt_upper_bound(z, labels, knots, 0.05) > 0.3
    assert opt_upper_bound(z, labels, knots, 0.0) == pytest.approx(1)


def test_components_keep_antipodal_directions_apart():
    directions, labels = components_of(GaussianMixture.xor(5, 1.0))
    assert directions.shape == (4, 5)
    assert labels.tolist() == [1, 1, -1, -1]
