from __future__ import annotations

import pytest
import torch
from torch import Tensor

from assay.methods.one_step import first_step, one_step

N, DIM, WIDTH = 200, 12, 40


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def data(outputs: int = 1) -> tuple[Tensor, Tensor]:
    inputs = torch.randn(N, DIM, generator=generator(1), dtype=torch.float64) + 0.3
    residuals = torch.randn(N, outputs, generator=generator(2), dtype=torch.float64)
    return inputs, residuals.squeeze(1) if outputs == 1 else residuals


def start(outputs: int, bias: float) -> tuple[Tensor, Tensor, Tensor]:
    """The symmetric network that the step starts from, written out: outgoing (width, outputs), weights, biases."""
    draws = generator()
    m = WIDTH // 4
    w = torch.randn(m, DIM, generator=draws, dtype=torch.float64)
    a = torch.randn(m, outputs, generator=draws, dtype=torch.float64)
    b = torch.full((m,), bias, dtype=torch.float64)
    a, w, b = torch.cat([a, -a]), torch.cat([w, -w]), torch.cat([b, -b])
    return torch.cat([a, -a]), torch.cat([w, w]), torch.cat([b, b])


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_step_is_autograds_on_a_network_of_zero_output(outputs):
    inputs, residuals = data(outputs)
    centred = inputs - inputs.mean(0)
    outgoing, weights, biases = start(outputs, 0.8 * float(centred.square().sum(1).mean().sqrt()))
    weights.requires_grad_()
    out = torch.relu(centred @ weights.T - biases) @ outgoing
    assert float(out.detach().abs().max()) < 1e-12, "neurons cancel in fours"
    # Any loss whose slope at zero output is −residual: a step with decay 1/rate leaves rate · (−gradient).
    loss = -(out * residuals.reshape(N, -1)).sum(1).mean()
    (gradient,) = torch.autograd.grad(loss, [weights])
    found = first_step(inputs, residuals, generator=generator(), width=WIDTH, bias_scale=0.8)
    torch.testing.assert_close(found.moves, -gradient, atol=1e-12, rtol=1e-9)
    torch.testing.assert_close(found.signs, biases.sign())
    torch.testing.assert_close(found.moves[: WIDTH // 2], -found.moves[WIDTH // 2 :])


def test_switches_keep_their_spread_and_their_median():
    inputs, residuals = data()
    step = first_step(inputs, residuals, generator=generator(), width=WIDTH)
    layer = step.layer(0.5)
    torch.testing.assert_close(layer.weights.norm(dim=1), torch.ones(WIDTH, dtype=torch.float64))
    spread = ((inputs - inputs.mean(0)) @ layer.weights.T).square().mean().sqrt()
    assert float(layer.switches.abs().quantile(0.5)) == pytest.approx(0.5 * float(spread))
    far = ((inputs - inputs.mean(0)) @ layer.weights.T).abs().amax(0)
    inside = layer.switches.abs() < far * (1 - 1e-9)
    products = layer.switches.abs() * step.moves.norm(dim=1)
    torch.testing.assert_close(products[inside], products[inside].mean().expand_as(products[inside]))
    wider = step.layer(1.0)
    both = inside & (wider.switches.abs() < far * (1 - 1e-9))
    torch.testing.assert_close(wider.switches[both], 2 * layer.switches[both])


def test_a_neuron_clamped_at_the_farthest_input_answers_the_same():
    inputs, residuals = data()
    step = first_step(inputs, residuals, generator=generator(), width=WIDTH)
    layer = step.layer(3.0)
    features = layer(inputs)
    far = layer.switches.abs() >= ((inputs - inputs.mean(0)) @ layer.weights.T).abs().amax(0) * (1 - 1e-9)
    positive = far & (layer.switches > 0)
    assert bool(positive.any())
    assert float(features[:, positive].max()) == pytest.approx(0, abs=1e-9)


def test_redrawn_biases_and_reproducible_draws():
    inputs, residuals = data()
    kept = one_step(inputs, residuals, generator=generator(), width=WIDTH)
    again = one_step(inputs, residuals, generator=generator(), width=WIDTH)
    drawn = one_step(inputs, residuals, generator=generator(), width=WIDTH, biases="redraw")
    assert torch.equal(kept.switches, again.switches)
    assert torch.equal(kept.weights, drawn.weights)
    assert not torch.equal(kept.switches, drawn.switches)


def test_autocast_changes_nothing():
    inputs, residuals = data()
    inputs, residuals = inputs.float(), residuals.float()
    plain = one_step(inputs, residuals, generator=generator(), width=WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = one_step(inputs, residuals, generator=generator(), width=WIDTH)
        assert torch.equal(mixed(inputs), plain(inputs))
    assert torch.equal(plain.weights, mixed.weights)


def test_inputs_of_every_type_are_taken_and_the_step_keeps_no_graph():
    inputs, residuals = data()
    whole = (3 * inputs).round()
    expected = one_step(whole.float(), residuals, generator=generator(), width=WIDTH)
    for kind in (torch.int64, torch.int16, torch.float16, torch.bfloat16):
        found = one_step(whole.to(kind), residuals, generator=generator(), width=WIDTH)
        assert torch.equal(found.weights, expected.weights)
        assert torch.equal(found(whole.to(kind)), expected(whole.float()))
    assert torch.equal(torch.as_tensor(expected(whole.float().numpy())), expected(whole.float()))
    seen = whole.clone().requires_grad_()
    layer = one_step(seen, residuals, generator=generator(), width=WIDTH)
    assert not layer.weights.requires_grad
    assert not layer.switches.requires_grad
    assert layer(seen).requires_grad


def test_refusals():
    inputs, residuals = data()
    for sentence, changes in (
        ("multiple of 4", {"width": 10}),
        ("width must be at least 4", {"width": 0}),
        ("bias_scale must be positive", {"bias_scale": 0.0}),
        ("switch must be positive", {"switch": -1.0}),
        ("biases must be one of keep, redraw", {"biases": "drop"}),
    ):
        with pytest.raises(ValueError, match=sentence):
            one_step(inputs, residuals, generator=generator(), **{"width": WIDTH, **changes})
    with pytest.raises(ValueError, match="residuals must be finite"):
        one_step(inputs, residuals * torch.nan, generator=generator())
    with pytest.raises(ValueError, match=r"inputs \(n, dim\)"):
        one_step(inputs, residuals[:-1], generator=generator())
    with pytest.raises(ValueError, match="at least one sample"):
        one_step(inputs[:0], residuals[:0], generator=generator())
    with pytest.raises(ValueError, match=rf"inputs are \(n, {inputs.shape[1]}\)"):
        one_step(inputs, residuals, generator=generator(), width=WIDTH)(inputs[:, 1:])
    with pytest.raises(ValueError, match="no neuron a direction"):
        one_step(inputs, residuals * 0, generator=generator())
