from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from assay.methods.norm_tied_bias import norm_tied_bias


def stepped(rate: float | None, layer: nn.Module, steps: int = 3) -> nn.Module:
    layer = copy.deepcopy(layer)
    layer.bias.requires_grad_(False)
    optimizer = torch.optim.SGD([layer.weight], lr=0.1, momentum=0.9)

    def train() -> None:
        for step in range(steps):
            inputs = torch.randn(
                8, *((3, 5, 5) if isinstance(layer, nn.Conv2d) else (3,)), generator=torch.Generator().manual_seed(step)
            )
            optimizer.zero_grad()
            layer(inputs).square().mean().backward()
            optimizer.step()

    if rate is None:
        train()
    else:
        with norm_tied_bias(optimizer, [layer], rate):
            train()
    return layer


@pytest.mark.parametrize("layer", [nn.Linear(3, 4), nn.Conv2d(3, 4, 2)])
def test_biases_fall_with_the_movement(layer):
    one = stepped(0.3, layer, steps=1)
    moved = (one.weight - layer.weight).flatten(1).norm(dim=1)
    torch.testing.assert_close(one.bias, layer.bias - 0.3 * moved)
    assert bool((stepped(0.3, layer, steps=4).bias < one.bias).all())


def test_a_rate_of_zero_changes_nothing_and_hooks_come_off():
    layer = nn.Linear(3, 4)
    plain, zero = stepped(None, layer), stepped(0.0, layer)
    assert torch.equal(plain.weight, zero.weight)
    assert torch.equal(plain.bias, zero.bias)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with pytest.raises(RuntimeError, match="inside"), norm_tied_bias(optimizer, [layer], 0.5):
        raise RuntimeError("inside")
    before = layer.bias.clone()
    layer.weight.grad = torch.ones_like(layer.weight)
    optimizer.step()
    assert torch.equal(layer.bias, before)


def test_refusals():
    layer = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for layers, rate, words in (
        ([layer], -0.1, "at least 0"),
        ([], 0.1, "no layer"),
        ([nn.ReLU()], 0.1, "nothing to tie"),
    ):
        with pytest.raises(ValueError, match=words), norm_tied_bias(optimizer, layers, rate):
            pass


class Conv1D(nn.Module):
    """GPT-2's linear layer, whose units are columns."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.ones(4))


@pytest.mark.parametrize("layer", [nn.LayerNorm(4), nn.BatchNorm1d(4), nn.ConvTranspose2d(4, 4, 2), Conv1D()])
def test_layers_whose_units_are_not_rows_are_refused_before_a_step(layer):
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="one row of its weight"), norm_tied_bias(optimizer, [layer], 0.1):
        pass


def test_a_layer_listed_twice_and_a_computed_weight_are_refused():
    layer = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="listed twice"), norm_tied_bias(optimizer, [layer, layer], 0.1):
        pass
    computed = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    with pytest.raises(ValueError, match="parametrisation"), norm_tied_bias(optimizer, [computed], 0.1):
        pass


def test_a_layer_that_the_optimiser_lacks_is_refused():
    kept, lost = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = torch.optim.SGD(kept.parameters(), 0.1)
    with (
        pytest.raises(ValueError, match="does not own the weights of 1 of the layers"),
        norm_tied_bias(optimizer, [kept, lost], 0.1),
    ):
        pass
