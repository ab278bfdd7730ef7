"""FC(m): one hidden layer of m units with activation z², softmax head; as a module and stacked over seeds."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from assay.training.seeds import Seeds


class Quadratic(nn.Module):
    """Logits (batch, classes) = head((hidden(inputs))²). Inputs of any shape (batch, ...) are flattened."""

    def __init__(self, width: int, *, inputs: int, classes: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if min(width, inputs, classes) < 1:
            raise ValueError(f"width, inputs and classes must be at least 1, not {width}, {inputs} and {classes}")
        self.hidden = nn.Linear(inputs, width)
        self.head = nn.Linear(width, classes)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(_scale(name, inputs, width) * torch.randn(parameter.shape, generator=generator))

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head(self.hidden(inputs.flatten(1)).square())
        return logits


def _scale(name: str, inputs: int, width: int) -> float:
    """Pre-activations start near N(0, 1) for inputs of unit variance; E[z⁴] = 3 sets the head's scale."""
    scales: dict[str, float] = {"hidden.weight": inputs**-0.5, "head.weight": (3 * width) ** -0.5}
    return scales.get(name, 0.0)


def quadratic_parameters(seeds: Seeds, name: str, width: int, *, inputs: int, classes: int) -> dict[str, Tensor]:
    """Initial parameters of all seeds, each (seeds, ...) and under the name it has in ``Quadratic``, so that
    ``torch.func.stack_module_state`` and this function fill the same dictionary."""
    layers = {"hidden": (width, inputs), "head": (classes, width)}
    shapes: dict[str, tuple[int, ...]] = {f"{layer}.weight": shape for layer, shape in layers.items()}
    shapes |= {f"{layer}.bias": shape[:1] for layer, shape in layers.items()}
    return {key: _scale(key, inputs, width) * seeds.normal(f"{name}/{key}", *shape) for key, shape in shapes.items()}


def quadratic(parameters: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
    """Logits (seeds, batch, classes) of stacked networks on inputs (seeds, batch, dim), or (batch, dim) for all."""
    if inputs.dim() == 2:
        inputs = inputs.expand(len(parameters["head.bias"]), -1, -1)
    hidden = torch.baddbmm(parameters["hidden.bias"].unsqueeze(1), inputs, parameters["hidden.weight"].mT)
    return torch.baddbmm(parameters["head.bias"].unsqueeze(1), hidden.square(), parameters["head.weight"].mT)
