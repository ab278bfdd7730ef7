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


@contextmanager
def norm_tied_bias(optimizer: torch.optim.Optimizer, layers: Iterable[nn.Module], rate: float) -> Iterator[None]:
    """Within the context each ``optimizer.step()`` lowers every unit's bias by ``rate`` times the length that the
    step moved its weights. Layers need ``weight`` (units, ...) and ``bias`` (units,); freeze the biases
    (``requires_grad_(False)``) for the theory's rule, where no gradient reaches them."""
    if rate < 0:
        raise ValueError(f"the rate ρ must not be negative, not {rate}")
    chosen: list[tuple[Tensor, Tensor]] = []
    for layer in layers:
        weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
        if not isinstance(weight, Tensor) or not isinstance(bias, Tensor):
            raise ValueError(f"{type(layer).__name__} has no weight and bias to tie")
        chosen.append((weight, bias))
    if not chosen:
        raise ValueError("no layer was given")
    before: list[Tensor] = []

    def remember(*_: Any) -> None:
        before[:] = [weight.detach().clone() for weight, _ in chosen]

    @torch.no_grad()
    def lower(*_: Any) -> None:
        for (weight, bias), old in zip(chosen, before, strict=True):
            bias.sub_(rate * torch.linalg.vector_norm((weight.detach() - old).flatten(1), dim=1))

    hooks = [optimizer.register_step_pre_hook(remember), optimizer.register_step_post_hook(lower)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
