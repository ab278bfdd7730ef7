from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from assay.methods.looped_transformer import LoopedLinearTransformer, make_prompt, prompt_condition
from assay.probes.gd_probe import gd_probe


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


INPUTS, TARGETS = normal(5, 20, 4), normal(5, 20, seed=1)
LARGEST = prompt_condition(INPUTS).largest


@pytest.mark.parametrize("alpha", [1.0, -2.5])
def test_the_constructed_transformer_is_recovered(alpha):
    shares = torch.linspace(0.3, 0.9, 6, dtype=torch.float64)
    steps = shares.unsqueeze(1) / LARGEST
    rows = LoopedLinearTransformer(4, 6, steps).query_rows(make_prompt(INPUTS, TARGETS, alpha))
    fit = gd_probe(rows[..., :-1], INPUTS, TARGETS, alpha)
    torch.testing.assert_close(fit.steps, steps, rtol=1e-9, atol=0)
    assert float(fit.residuals.max()) < 1e-12
    assert float(fit.shared_residuals.max()) > 1e-3, "each prompt had a step of its own"
    one = LoopedLinearTransformer(4, 6, 0.01).query_rows(make_prompt(INPUTS, TARGETS, alpha))
    shared = gd_probe(one[..., :-1], INPUTS, TARGETS, alpha)
    torch.testing.assert_close(shared.shared_steps, torch.full((6,), 0.01, dtype=torch.float64))
    assert float(shared.shared_residuals.max()) < 1e-12


def test_against_the_formula_by_a_loop():
    states = normal(4, 5, 4, seed=3)
    fit = gd_probe(states, INPUTS, TARGETS, 2.0)
    for layer in range(3):
        for prompt in range(5):
            theta, after = -states[layer, prompt] / 2, -states[layer + 1, prompt] / 2
            gradient = INPUTS[prompt].T @ (INPUTS[prompt] @ theta - TARGETS[prompt])
            cosine = torch.nn.functional.cosine_similarity(theta - after, gradient, dim=0)
            assert float(fit.steps[layer, prompt]) == pytest.approx(
                float((theta - after) @ gradient / (gradient @ gradient))
            )
            assert float(fit.residuals[layer, prompt]) == pytest.approx(1 - float(cosine) ** 2)


def test_momentum_is_not_gradient_descent():
    theta, velocity, path = torch.zeros(5, 4).double(), torch.zeros(5, 4).double(), []
    for _ in range(6):
        path.append(theta)
        gradient = ((INPUTS @ theta.unsqueeze(-1)).squeeze(-1) - TARGETS).unsqueeze(-2) @ INPUTS
        velocity = 0.9 * velocity - 0.3 * gradient.squeeze(-2) / LARGEST.unsqueeze(-1)
        theta = theta + velocity
    fit = gd_probe(torch.stack(path), INPUTS, TARGETS, -1.0)
    assert float(fit.residuals[0].max()) < 1e-12
    assert float(fit.residuals[2:].amin(0).min()) > 1e-4


def test_a_layer_that_stands_still_and_a_single_prompt():
    states = normal(1, 4, seed=2).expand(3, 4)
    fit = gd_probe(states, INPUTS[0], TARGETS[0])
    assert fit.steps.tolist() == [0.0, 0.0]
    assert fit.residuals.isnan().all()
    assert fit.shared_steps.shape == (2,)


def test_refusals():
    states = normal(3, 5, 4)
    with pytest.raises(ValueError, match="do not fit"):
        gd_probe(normal(3, 5, 3), INPUTS, TARGETS)
    with pytest.raises(ValueError, match="do not fit"):
        gd_probe(states[:1], INPUTS, TARGETS)
    with pytest.raises(ValueError, match="α = 0"):
        gd_probe(states, INPUTS, TARGETS, 0.0)
    with pytest.raises(ValueError, match="finite"):
        gd_probe(states * math.inf, INPUTS, TARGETS)
