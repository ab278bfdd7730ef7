"""Which weights of an encoder a magnitude mask can hide, and what a mask hides."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import Report, bars

Layers = str | Sequence[str] | Callable[[str, nn.Module], bool]

PRUNABLE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True, repr=False)
class MaskReport(Report):
    """What a mask hides: pruned and total counts (neurons or weights) per layer and overall."""

    pruned: dict[str, int]
    total: dict[str, int]

    @property
    def share(self) -> float:
        return sum(self.pruned.values()) / sum(self.total.values())

    def headline(self) -> str:
        return f"the mask hides {sum(self.pruned.values())} of {sum(self.total.values())} ({self.share:.1%})"

    def table(self) -> list[dict[str, Any]]:
        """A row per layer."""
        return [
            {"layer": name, "pruned": count, "total": self.total[name], "share": count / self.total[name]}
            for name, count in self.pruned.items()
        ]

    def figure(self) -> Any:
        """The masked share of every layer."""
        return bars(self.table(), "layer", "share", share="share that is masked")


@dataclass(frozen=True)
class Matrix:
    """A weight that can be masked: the module that holds it, its name and its bias's there, the axis that counts
    neurons, and where their entries of the bias begin."""

    module: nn.Module
    weight_name: str = "weight"
    bias_name: str = "bias"
    axis: int = 0
    first: int = 0

    @property
    def weight(self) -> Tensor:
        found: Tensor = getattr(self.module, self.weight_name)
        return found


def chosen_layers(encoder: nn.Module, layers: Layers | None) -> dict[str, Matrix]:
    """The layers to prune, by name, in the encoder's order."""
    prunable = _prunable(encoder)
    layers = [layers] if isinstance(layers, str) else layers
    if layers is None:
        chosen = {name: layer for name, layer in prunable.items() if layer.weight.requires_grad}
    elif callable(layers):
        chosen = {name: layer for name, layer in prunable.items() if layers(name, layer.module)}
    else:
        if unknown := [name for name in layers if name not in prunable]:
            raise ValueError(f"no linear or convolution layer is called {unknown[0]!r}, only {', '.join(prunable)}")
        chosen = {name: layer for name, layer in prunable.items() if name in layers}
    if not chosen:
        raise ValueError("there is no linear or convolution layer to prune that trains: name in layers what to mask")
    if parametrised := [name for name, layer in chosen.items() if layer.weight_name not in layer.module._parameters]:
        raise ValueError(f"the weight of {parametrised[0]!r} is computed by a parametrisation and cannot be masked")
    if layers is None:
        _tell_of_others(encoder, chosen)
    return chosen


def _prunable(encoder: nn.Module) -> dict[str, Matrix]:
    """Every weight that a linear or convolution layer computes with, by name, in the encoder's order: the layer's name,
    or the parameter's where a module holds several (``attention.in_proj_weight``)."""
    found: dict[str, Matrix] = {}
    for name, module in encoder.named_modules():
        if isinstance(module, PRUNABLE):
            found[name] = Matrix(module)
        elif type(module).__name__ == "Conv1D" and getattr(module._parameters.get("weight"), "ndim", 0) == 2:
            found[name] = Matrix(module, axis=1)  # GPT-2's linear layer, whose weight is stored (inputs, neurons)
        elif isinstance(module, nn.MultiheadAttention):
            parts = {"in_proj_weight": 0}
            if module.in_proj_weight is None:  # keys or values have a size of their own
                parts = {f"{part}_proj_weight": k * module.embed_dim for k, part in enumerate("qkv")}
            for part, first in parts.items():
                found[f"{name}.{part}" if name else part] = Matrix(module, part, "in_proj_bias", first=first)
    return found


def _tell_of_others(encoder: nn.Module, chosen: Mapping[str, Matrix]) -> None:
    """Whoever leaves the choice to us expects every matrix to be masked; recurrent layers and a model's own parameters
    are not. Embeddings, norms and tokens (a leading axis of one) are never meant."""
    known = {id(layer.weight) for layer in chosen.values()}
    for module in encoder.modules():
        if any(word in type(module).__name__.lower() for word in ("norm", "embed")):
            known |= {id(parameter) for parameter in module._parameters.values()}
    others = {name: p for name, p in encoder.named_parameters() if p.requires_grad and id(p) not in known}
    left = {name: p.numel() for name, p in others.items() if p.ndim > 1 and len(p) > 1}
    if left:
        names = ", ".join([*left][:4]) + (f" and {len(left) - 4} more" if len(left) > 4 else "")
        share = sum(left.values()) / sum(parameter.numel() for parameter in encoder.parameters())
        warnings.warn(
            f"in no linear or convolution layer, so never masked: {names} ({share:.1%} of the parameters); "
            "name in layers what to mask, and this is not said",
            stacklevel=4,
        )


def keep_largest(magnitudes: Tensor, alpha: float) -> Tensor:
    """All but the round(α n) smallest; among equals the lower index is pruned first."""
    count = round(alpha * len(magnitudes))
    if count and count == len(magnitudes):
        raise ValueError(f"alpha = {alpha} prunes all {count} of them: nothing would be left")
    keep = torch.ones_like(magnitudes, dtype=torch.bool)
    keep[magnitudes.argsort(stable=True)[:count]] = False
    return keep
