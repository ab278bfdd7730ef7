"""Erase-and-step warm-up: one large-batch gradient step that forgets the random weights it started from.

A step on ``loss + |w|^2 / (2 learning_rate)`` cancels the old weight exactly, so that the new weight *is* the scaled
negative gradient: what the first step learned, with nothing of the initialisation mixed in. Experimental.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import RowReport, bars

from ._checks import check_fields, limits
from ._data import as_targets, moved, parts_of, size_of
from ._models import answer, device_of, unknown
from ._precision import uncached_casts


@dataclass(frozen=True)
class ErasedWeight:
    """What the step did to one weight."""

    name: str
    norm_before: float
    norm_after: float
    cosine: float  # between the weight before and after, over the whole tensor; NaN where it was zero before
    zero_rows: int  # output rows without gradient: erased, and left at zero


@dataclass(frozen=True, repr=False)
class Erasure(RowReport):
    """What the step did, weight by weight."""

    def headline(self) -> str:
        return f"{len(self)} weights were replaced by their gradients"

    def figure(self) -> Any:
        """Norms before and after."""
        rows = [
            {"weight": row.name, "when": when, "norm": norm}
            for row in self.rows
            for when, norm in (("before", row.norm_before), ("after", row.norm_after))
        ]
        return bars(rows, "weight", "norm", "when")


@dataclass(frozen=True)
class EraseAndStep:
    """Replace the weights of ``layers`` (module or parameter names) by a multiple of their negative gradient.

    ``learning_rate`` is that multiple; ``None`` keeps each weight's norm, so that only directions change. ``forget`` is
    the erased share of the old weight: 1 erases it, 0 is a plain gradient step. Biases, buffers (the statistics of
    batch normalisation) and other layers stay.
    """

    layers: Sequence[str]
    learning_rate: float | None = field(default=None, metadata=limits(above=0))
    forget: float = field(default=1.0, metadata=limits(least=0, most=1))

    def __post_init__(self) -> None:
        if isinstance(self.layers, str) or not self.layers:
            raise ValueError("layers must be a list of at least one module or parameter name")
        check_fields(self)
        if self.learning_rate is None and self.forget < 1:
            raise ValueError("with forget below 1 the size of the step matters: give a learning_rate")

    def apply(
        self,
        model: nn.Module,
        loss: Callable[[Tensor, Tensor], Tensor],
        batches: Any,
    ) -> Erasure:
        """Take the step on the mean of ``loss(model(inputs), labels)`` over all samples of ``batches``: pairs or
        mappings with labels, a data loader of either, or one batch. Of a record, its ``logits`` go to the loss.

        The gradient is taken in the model's present mode, and ``.grad`` fields are left alone. Either every chosen
        weight is replaced or, where a gradient is missing, zero or not finite, none.
        """
        chosen = _weights(model, self.layers)
        with _buffers_kept(model), uncached_casts(), torch.inference_mode(False):
            gradients = _mean_gradients(model, list(chosen.values()), loss, batches)
        for name, gradient in zip(chosen, gradients, strict=True):
            if not bool(gradient.isfinite().all()) or not bool(gradient.any()):
                raise ValueError(f"the gradient of {name!r} is zero or not finite: erasing would destroy the layer")
            if self.learning_rate is None and not bool(chosen[name].any()):
                raise ValueError(f"{name!r} is zero and has no norm to keep: give a learning_rate")
        return Erasure(
            tuple(self._replace(name, chosen[name], gradient) for name, gradient in zip(chosen, gradients, strict=True))
        )

    @torch.no_grad()
    def _replace(self, name: str, weight: nn.Parameter, gradient: Tensor) -> ErasedWeight:
        before = weight.to(gradient.dtype, copy=True)
        rate = self.learning_rate if self.learning_rate is not None else float(before.norm() / gradient.norm())
        # Assigned, not subtracted: w - w in floating point leaves a residue that can exceed a tiny gradient.
        weight.copy_(-rate * gradient if self.forget == 1 else (1 - self.forget) * before - rate * gradient)
        return ErasedWeight(
            name=name,
            norm_before=float(before.norm()),
            norm_after=float(weight.to(gradient.dtype).norm()),
            cosine=float((_unit(before) * _unit(weight)).sum()),
            zero_rows=int((weight.flatten(1) == 0).all(dim=1).sum()),
        )


def _mean_gradients(
    model: nn.Module,
    weights: list[nn.Parameter],
    loss: Callable[[Tensor, Tensor], Tensor],
    batches: Any,
) -> list[Tensor]:
    """Gradients of the mean loss over all samples; batches may differ in size. Sums of many batches need more digits
    than half precision has: a sum that has grown would swallow what comes after."""
    wide = [torch.promote_types(weight.dtype, torch.float32) for weight in weights]
    sums, samples = [torch.zeros_like(weight, dtype=kind) for weight, kind in zip(weights, wide, strict=True)], 0
    for inputs, labels in parts_of(batches):
        if labels is None:
            raise ValueError("a batch is a pair (inputs, labels) or a mapping with labels")
        count = size_of(inputs)
        targets = labels if isinstance(labels, Tensor) and labels.is_floating_point() else as_targets(labels)
        with torch.enable_grad():
            value = loss(answer(model, moved(inputs, device_of(model))), targets.to(device_of(model)))
            gradients = torch.autograd.grad(value, weights, materialize_grads=True)
        for total, gradient in zip(sums, gradients, strict=True):
            total.add_(gradient, alpha=count)
        samples += count
    return [total / samples for total in sums]  # without a batch not finite, which is refused


@contextmanager
def _buffers_kept(model: nn.Module) -> Iterator[None]:
    """Passes within write their running statistics into copies; afterwards every buffer is the tensor that it was."""
    before = [(module, dict(module._buffers)) for module in model.modules()]
    copies = {id(buffer): buffer.clone() for buffer in model.buffers()}  # buffers that modules share stay shared
    try:
        for module, buffers in before:
            module._buffers.update({name: copies[id(b)] for name, b in buffers.items() if b is not None})
        yield
    finally:
        for module, buffers in before:
            module._buffers.clear()
            module._buffers.update(buffers)


def _weights(model: nn.Module, layers: Sequence[str]) -> dict[str, nn.Parameter]:
    """The weights to replace, by name; those whose replacement would break the model are refused."""
    every = dict(model.named_parameters(remove_duplicate=False))
    modules = dict(model.named_modules(remove_duplicate=False))
    chosen: dict[str, nn.Parameter] = {}
    for layer in layers:
        if layer in every:
            names = [layer]
        elif layer in modules:
            prefix = f"{layer}." if layer else ""
            own = [prefix + name for name, _ in modules[layer].named_parameters(recurse=False)]
            names = [name for name in own if every[name].ndim >= 2 or _normalises(modules[layer])]
        else:
            raise unknown("layer", layer, modules)
        if not names:
            raise ValueError(f"the layer {layer!r} holds no weight matrix of its own; name the layers inside it")
        chosen |= {name: every[name] for name in names}
    for name, weight in chosen.items():
        owner = modules[name.rpartition(".")[0]]
        others = [other for other, parameter in every.items() if parameter is weight and other != name]
        reason = None
        if others:
            reason = f"is tied to {', '.join(others)}: erasing one would erase the other"
        elif _normalises(owner) or "parametrizations." in name:
            reason = "belongs to a normalisation or parametrisation: its scale must not be erased"
        elif weight.ndim < 2 or not weight.requires_grad:
            reason = "is not a trainable weight matrix, and only those are erased"
        if reason:
            raise ValueError(f"{name!r} {reason}")
    return chosen


def _unit(weight: Tensor) -> Tensor:
    weight = weight.detach().double()
    norm: Tensor = torch.linalg.vector_norm(weight)
    return weight / norm


def _normalises(module: nn.Module) -> bool:
    """Normalisation layers of PyTorch and of other libraries (``LlamaRMSNorm``) carry the word in their class name."""
    return "norm" in type(module).__name__.lower()
