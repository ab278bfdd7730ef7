"""One layer of somebody else's model: its rows, what goes out of it, and passes that leave no trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from ._models import COMPILED, as_written, module_named

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


class Layer:
    """A linear or convolutional layer by its name in the model. Rows are its output units: (units, dim), whatever the
    axes of its weight; transformers' ``Conv1D`` keeps them in columns."""

    def __init__(self, model: nn.Module, name: str) -> None:
        # Hooks that are set after compilation are not seen inside: the model as it was written runs instead.
        self.model = as_written(model)
        name = name.removeprefix(COMPILED) if model is not self.model else name
        module: Any = module_named(self.model, name)
        self.name, self.module = name, module
        self.transposed = type(module).__name__ == "Conv1D" and hasattr(module, "nf")
        if not (self.transposed or isinstance(module, (nn.Linear, *CONVOLUTIONS))):
            kinds = "nn.Linear, nn.Conv1d to nn.Conv3d or transformers' Conv1D"
            raise ValueError(f"the layer {name!r} must be {kinds}, not {type(module).__name__}")
        if is_parametrized(module, "weight") or not isinstance(module.weight, nn.Parameter):
            raise ValueError(f"the weight of {name!r} is made from others (a parametrisation): take that off first")

    @property
    def weight(self) -> nn.Parameter:
        found: nn.Parameter = self.module.weight
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a row: (in,) or (channels, height, width)."""
        return (self.weight.shape[0],) if self.transposed else tuple(self.weight.shape[1:])

    @property
    def device(self) -> torch.device:
        return self.weight.device

    def rows(self, weight: Tensor | None = None) -> Tensor:
        """The weight, or a tensor of its shape such as its gradient, as (units, dim)."""
        found = (self.weight if weight is None else weight).detach()
        return found.T if self.transposed else found.flatten(1)

    def biases(self) -> Tensor | None:
        """(units,), or None."""
        bias = getattr(self.module, "bias", None)
        return None if bias is None else bias.detach()

    def thresholds(self) -> Tensor:
        """|bias| / ‖row‖ of every unit: how far from the origin it switches; infinite for a row of norm zero."""
        rows, biases = self.rows().double(), self.biases()
        norms = torch.linalg.vector_norm(rows, dim=1)
        offsets = torch.zeros_like(norms) if biases is None else biases.double().abs()
        return torch.where(norms > 0, offsets / torch.where(norms > 0, norms, 1), torch.inf)

    def units_last(self, output: Tensor) -> Tensor:
        """The layer's output, or its gradient, with the axis of units at the end: (samples, ..., units)."""
        if not isinstance(self.module, CONVOLUTIONS):
            return output
        spatial = self.weight.ndim - 2
        return output.movedim(-spatial - 1, -1)


@contextmanager
def trainable(parameter: nn.Parameter) -> Iterator[None]:
    """Let a frozen parameter have gradients inside, also where the caller has switched them off."""
    before = parameter.requires_grad
    try:
        with torch.inference_mode(False), torch.enable_grad():
            parameter.requires_grad_(True)
            yield
    finally:
        parameter.requires_grad_(before)
