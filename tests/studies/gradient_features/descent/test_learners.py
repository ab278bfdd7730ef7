from __future__ import annotations

import math

import pytest
import torch

from assay.studies.gradient_features.descent.learners import OwnFeatures
from assay.studies.gradient_features.descent.theory import flip_bound
from assay.training import TwoLayer

AXES = torch.eye(2, 4, dtype=torch.float64)


def network(*angles: float) -> TwoLayer:
    """One seed; each neuron lies at an angle from the first axis, towards the second."""
    weights = torch.tensor([[[math.cos(a), math.sin(a), 0, 0] for a in angles]], dtype=torch.float64)
    return TwoLayer(weights, torch.zeros(1, len(angles)).double(), torch.ones(1, len(angles)).double())


def test_a_neuron_that_turns_to_another_feature_has_left_its_own():
    seen = OwnFeatures(network(0.1, math.pi + 0.1, math.pi / 2, 0.7), AXES, width=0.1)
    assert seen.caught.tolist() == [[True, True, True, False]], "cones have two sides"
    assert float(seen.cosine(network(0.1, math.pi + 0.1, math.pi / 2, 0.7))) == pytest.approx(math.cos(0.1))
    assert float(seen.kept(network(0.1, 0.2, 1.5, 3.0))) == 1
    assert float(seen.kept(network(math.pi / 2, 0.1, math.pi / 2, 0.7))) == pytest.approx(2 / 3)
    assert OwnFeatures(network(0.7), AXES, width=0.1).cosine(network(0.7)).isnan().all(), "none was caught"
    assert seen.cosine(network(0.1, math.nan, math.pi / 2, 0.7)).isnan().all(), "a neuron is lost beyond all numbers"


@pytest.mark.parametrize("deviation", [0.5, 1.0])
def test_no_more_gates_flip_than_the_density_allows(deviation):
    generator = torch.Generator().manual_seed(0)
    inputs = deviation * torch.randn(20_000, 30, generator=generator, dtype=torch.float64)
    inputs[:10_000, 0] += 4
    weights = torch.randn(30, generator=generator, dtype=torch.float64)
    along = torch.eye(1, 30, dtype=torch.float64)[0]
    largest = float(inputs.norm(dim=1).max())
    for size in (1e-3, 1e-2, 5e-2):
        moved = weights + size * weights.norm() * along
        flips = float(((inputs @ weights > 0.3) != (inputs @ moved > 0.3)).double().mean())
        assert 0 < flips <= float(flip_bound(torch.tensor(size), largest, deviation))
