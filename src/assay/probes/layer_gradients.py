"""The weight gradients of a layer's units under a fixed signal, on random parts of the data, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods._checks import all_finite
from assay.methods._data import Labelled, rows_of
from assay.methods._layers import Layer, trainable
from assay.methods._models import answer, evaluating
from assay.methods._precision import uncached_casts
from assay.training.seeds import stream

from .residuals import Residuals


@dataclass(frozen=True)
class LayerGradients:
    """Σ residual · ∂output/∂weight over each part of the data, divided by all samples and by each unit's outgoing
    scale: the sum of ``parts`` (parts, units, dim) is the mean over the data. ``shares`` (parts,) add up to 1."""

    parts: Tensor
    shares: Tensor
    residuals: Residuals

    def stability(self, units: Tensor) -> float:
        """The cosine to expect between a unit's gradient on one half of the data and on the other, over the ``units``.

        Parts share the signal and have noise of their own, so that products of different parts estimate the signal,
        and all pairs of parts are used. Unit by unit: a mean over units that were chosen, with signs, because their
        gradients point the same way would find agreement in noise alone.
        """
        found = self.parts[self.shares > 0][:, units]
        means = found / self.shares[self.shares > 0][:, None, None]  # (parts, units, dim)
        count, lengths = len(means), means.square().sum(2)
        weights = 1 / found.sum(0).square().sum(1)  # every unit counts the same
        if count < 2:
            return 0.0
        signal = (means.sum(0).square().sum(1) - lengths.sum(0)) / (count * (count - 1))
        noise = (lengths.mean(0) - signal) * 2 / count
        return float((weights * signal).sum() / (weights * (signal + noise)).sum())


def layer_gradients(
    layer: Layer, data: Labelled, *, center: bool, output: int | None, parts: int, seed: int
) -> LayerGradients:
    """Each sample falls into one of the parts by a draw of ``seed``."""
    # A shuffling data loader draws from the global generator, which is left as it was.
    with torch.random.fork_rng(devices=[]), evaluating(layer.model), trainable(layer.weight), uncached_casts():
        # A stream of its own: a plain generator of the same seed may have drawn the data themselves.
        draws = stream(seed, "parts")
        batches = iter(data)
        first = next(batches)
        residuals = Residuals(first[1], data, center=center, output=output)
        # Class labels take one pass, also over data that can be read but once; the mean of numbers takes one more.
        batches = chain([first], batches) if residuals.mean is None else iter(data)
        kind = torch.promote_types(layer.weight.dtype, torch.float32)
        sums = [torch.zeros_like(layer.weight, dtype=kind) for _ in range(parts)]
        counts = torch.zeros(parts)
        with OutgoingScale(layer) as scale:
            for inputs, targets in batches:
                place = torch.randint(parts, (len(targets),), generator=draws)
                counts += torch.bincount(place, minlength=parts)
                for which, total in enumerate(sums):
                    chosen = place == which
                    if bool(chosen.any()):
                        part = rows_of(inputs, chosen), targets[chosen.to(targets.device)]
                        total.add_(_gradient(layer, *part, residuals, scale))
        outgoing = scale.value()
    inverse = torch.where(outgoing > 0, 1 / torch.where(outgoing > 0, outgoing, 1), 0) / residuals.samples
    rows = torch.stack([layer.rows(total).cpu().float() for total in sums])
    return LayerGradients(rows * inverse.cpu().unsqueeze(1), counts / residuals.samples, residuals)


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
