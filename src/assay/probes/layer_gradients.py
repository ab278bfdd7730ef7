"""The weight gradients of a layer's units under a fixed signal, on two halves of the data, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods._batches import Labelled, rows_of
from assay.methods._checks import all_finite
from assay.methods._layers import Layer, answer, trainable
from assay.methods._models import evaluating
from assay.methods._precision import uncached_casts
from assay.training.seeds import stream

from .residuals import Residuals


@dataclass(frozen=True)
class LayerGradients:
    """Σ residual · ∂output/∂weight over each half, divided by the samples of both and by each unit's outgoing scale:
    their sum (units, dim) is the mean over the data."""

    halves: tuple[Tensor, Tensor]
    residuals: Residuals


def layer_gradients(layer: Layer, data: Labelled, *, center: bool, output: int | None, seed: int) -> LayerGradients:
    """Each sample falls into one of two halves by a coin of ``seed``."""
    # A shuffling data loader draws from the global generator, which is left as it was.
    with torch.random.fork_rng(devices=[]), evaluating(layer.model), trainable(layer.weight), uncached_casts():
        # A stream of its own: a plain generator of the same seed may have drawn the data themselves.
        coins = stream(seed, "halves")
        residuals = Residuals(data, center=center, output=output)
        kind = torch.promote_types(layer.weight.dtype, torch.float32)
        sums = (torch.zeros_like(layer.weight, dtype=kind), torch.zeros_like(layer.weight, dtype=kind))
        with OutgoingScale(layer) as scale:
            for inputs, targets in data:
                half = torch.randint(2, (len(targets),), generator=coins)
                for which, total in enumerate(sums):
                    chosen = half == which
                    if bool(chosen.any()):
                        part = rows_of(inputs, chosen), targets[chosen.to(targets.device)]
                        total.add_(_gradient(layer, *part, residuals, scale))
        outgoing = scale.value()
    inverse = torch.where(outgoing > 0, 1 / torch.where(outgoing > 0, outgoing, 1), 0) / residuals.samples
    first, second = (layer.rows(total).cpu().float() * inverse.cpu().unsqueeze(1) for total in sums)
    return LayerGradients((first, second), residuals)


def _gradient(layer: Layer, inputs: Any, targets: Tensor, residuals: Residuals, scale: OutgoingScale) -> Tensor:
    """Σ residual · ∂output/∂weight of a batch. A sum and no mean, which half precision could not hold."""
    outputs = answer(layer.model, inputs)
    residual = residuals(outputs.detach(), targets)
    scale.energies = residual.square().sum(1)
    objective = (residual * outputs.float().reshape(len(residual), -1)).sum()
    found = torch.autograd.grad(objective, [layer.weight], allow_unused=True) if objective.requires_grad else (None,)
    if found[0] is None:
        raise ValueError(f"the model's output does not depend on the layer {layer.name!r}")
    all_finite(f"the gradients of {layer.name!r}", found[0])
    return found[0]


class OutgoingScale:
    """How strongly a unit acts on the output, read off the signals that come back to it: the root of Σ signal² over
    Σ ‖residual‖² where there was a signal. A ReLU unit before a single output has exactly |its outgoing weight|."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        units = len(layer.rows())
        self.energies = torch.zeros(0, device=layer.device)  # ‖residual‖² of the samples in the present pass
        self.signal = torch.zeros(units, device=layer.device)
        self.driven = torch.zeros(units, device=layer.device)

    def __enter__(self) -> OutgoingScale:
        self.hook = self.layer.module.register_forward_hook(self._watch)
        return self

    def __exit__(self, *_: Any) -> None:
        self.hook.remove()

    def _watch(self, module: nn.Module, inputs: Any, output: Tensor) -> None:
        if output.requires_grad:
            output.register_hook(self._add)  # type: ignore[no-untyped-call]

    def _add(self, gradient: Tensor) -> None:
        signals = self.layer.units_last(gradient.detach()).float()
        energies = self.energies
        if len(signals) != len(energies):  # the first axis is not that of samples: time, or windows of an image
            energies = energies.mean().expand(len(signals))
        flat = signals.reshape(len(signals), -1, signals.shape[-1])
        self.signal += flat.square().sum((0, 1))
        self.driven += (energies[:, None, None] * (flat != 0)).sum((0, 1))

    def value(self) -> Tensor:
        """(units,)."""
        return torch.where(self.driven > 0, self.signal / torch.where(self.driven > 0, self.driven, 1), 0).sqrt()
