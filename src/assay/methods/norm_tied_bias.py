"""A bias that falls with its neuron's movement: b −= ρ‖Δw‖ after every optimizer step.

A unit pays in proportion to what it learned: its threshold keeps ahead of the noise in its weights, and a unit that
hardly moves, say because its feature is rare, hardly pays. A tool of the theory, for experiments; nothing uses it
unless it is attached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from ._checks import all_finite, number


@contextmanager
def norm_tied_bias(optimizer: torch.optim.Optimizer, layers: Iterable[nn.Module], rate: float) -> Iterator[None]:
    """Within the context each ``optimizer.step()`` lowers every unit's bias by ``rate`` times the length that the
    step moved its weights. Layers need ``weight`` (units, ...) and ``bias`` (units,); freeze the biases
    (``requires_grad_(False)``) for the theory's rule, where no gradient reaches them."""
    number("the rate ρ", rate, least=0)
    chosen = [_weight_and_bias(layer) for layer in layers]
    if not chosen:
        raise ValueError("no layer was given")
    if len({id(bias) for _, bias in chosen}) < len(chosen):
        raise ValueError("a layer is listed twice: its bias would pay twice for every step")
    owned = {id(each) for group in optimizer.param_groups for each in group["params"]}
    if lacking := sum(id(weight) not in owned for weight, _ in chosen):
        raise ValueError(
            f"the optimiser does not own the weights of {lacking} of the layers, so that no step moves them"
        )
    before: list[Tensor] = []

    def remember(*_: Any) -> None:
        before[:] = [weight.detach().clone() for weight, _ in chosen]

    @torch.no_grad()
    def lower(*_: Any) -> None:
        for (weight, bias), old in zip(chosen, before, strict=True):
            moved = torch.linalg.vector_norm((weight.detach() - old).flatten(1), dim=1)
            all_finite("the movements of a layer's units", moved)
            bias.sub_(rate * moved)

    hooks = [optimizer.register_step_pre_hook(remember), optimizer.register_step_post_hook(lower)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _weight_and_bias(layer: nn.Module) -> tuple[Tensor, Tensor]:
    """A layer's weight and bias, where unit i has row i of the weight: refused before a step is taken otherwise."""
    weight: Any = getattr(layer, "weight", None)
    bias: Any = getattr(layer, "bias", None)
    kind = type(layer).__name__
    gpt2s = kind == "Conv1D" and getattr(weight, "ndim", 0) == 2  # its linear layer, stored (inputs, units)
    transposed = gpt2s or isinstance(layer, nn.modules.conv._ConvTransposeNd)
    if is_parametrized(layer, "weight"):
        raise ValueError(f"the weight of {kind} is computed by a parametrisation, and no step moves it")
    both = isinstance(weight, Tensor) and isinstance(bias, Tensor)
    if both and not transposed and weight.ndim >= 2 and bias.shape == weight.shape[:1]:
        return weight, bias
    raise ValueError(f"{kind} does not have one row of its weight and one bias per unit: there is nothing to tie")
