"""Labelled data from wherever a person keeps them, as batches: tensors or arrays, a mapping such as a tokenizer makes,
a data loader, or a list of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._checks import all_finite

LABELS = ("labels", "label")


class Labelled:
    """Batches (inputs, targets) on a device, at most ``limit`` samples of them, as often as they are asked for.

    ``targets`` may be left out where ``data`` has them: a pair (inputs, targets), a mapping with ``labels``, or batches
    of either kind. Labels of any integer type come out as int64; arrays of floats get torch's default type.
    """

    def __init__(
        self, data: Any, targets: Any = None, *, size: int, device: torch.device, limit: int | None = None
    ) -> None:
        if targets is None and isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], (tuple, list)):
            data, targets = data
        if targets is None and isinstance(data, Mapping):
            data, targets = _parted(data)
        self.whole = None if targets is None else _pair(data, targets)
        self.parts = list(data) if isinstance(data, Iterator) else data  # a generator can be read but once
        if self.whole is None and (isinstance(data, (Tensor, np.ndarray)) or not isinstance(data, Iterable)):
            raise ValueError(f"{type(data).__name__} alone has no targets: give them as well")
        self.size, self.device, self.limit = size, device, limit

    def __iter__(self) -> Iterator[tuple[Any, Tensor]]:
        seen = 0
        for inputs, targets in self._stored():
            left = len(targets) if self.limit is None else self.limit - seen
            if left <= 0:
                return
            for start in range(0, min(left, len(targets)), self.size):
                rows = slice(start, min(start + self.size, left))
                yield on(self.device, rows_of(inputs, rows)), targets[rows].to(self.device)
            seen += len(targets)
        if not seen:
            raise ValueError("the data hold no sample")

    def targets(self) -> Tensor:
        """The targets of all samples, in order."""
        if self.whole is not None:
            return self.whole[1][: self.limit]
        return torch.cat([targets for _, targets in self._stored()])[: self.limit]

    def _stored(self) -> Iterator[tuple[Any, Tensor]]:
        if self.whole is not None:
            yield self.whole
            return
        for batch in self.parts:
            if isinstance(batch, Mapping):
                yield _pair(*_parted(batch))
            elif isinstance(batch, (tuple, list)) and len(batch) == 2:
                yield _pair(*batch)
            else:
                raise ValueError(f"a batch is a pair (inputs, targets) or a mapping with labels, not {_kind(batch)}")


def on(device: torch.device, inputs: Any) -> Any:
    """Inputs moved to the device; what is no tensor stays as it is."""
    if isinstance(inputs, Mapping):
        return {name: on(device, value) for name, value in inputs.items()}
    if not isinstance(inputs, Tensor):
        return inputs
    moved = inputs.to(device)
    return moved.clone() if moved.is_inference() else moved  # gradients are not taken through tensors of that mode


def rows_of(inputs: Any, rows: Any) -> Any:
    """The chosen samples (a slice, a mask or indices) of a tensor or of every tensor in a mapping."""
    if isinstance(inputs, Mapping):
        return {name: rows_of(value, rows) for name, value in inputs.items()}
    rows = rows.to(inputs.device) if isinstance(rows, Tensor) and isinstance(inputs, Tensor) else rows
    return inputs[rows] if isinstance(inputs, Tensor) else inputs


def as_inputs(values: Any) -> Any:
    """Tensors of what a model reads, checked to be finite; arrays of floats in torch's default type."""
    if isinstance(values, Mapping):
        return {name: as_inputs(value) for name, value in values.items()}
    if isinstance(values, np.ndarray):
        made = torch.from_numpy(np.ascontiguousarray(values))
        values = made.to(torch.get_default_dtype()) if made.is_floating_point() else made
    if isinstance(values, Tensor) and values.is_floating_point():
        all_finite("the inputs", values)
    return values


def as_targets(values: Any) -> Tensor:
    """Targets (n, ...): integers as int64, floats in torch's default type."""
    found = torch.as_tensor(values).detach()
    if found.is_complex():
        raise ValueError("targets must be integers or real numbers, and these are complex")
    if not found.is_floating_point():
        return found.long()
    all_finite("the targets", found)
    return found.to(torch.get_default_dtype())


def _parted(batch: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """A mapping without its labels, so that a model computes no loss of its own; and the labels."""
    name = next((name for name in LABELS if name in batch), None)
    if name is None:
        raise ValueError(f"a mapping needs labels under one of {', '.join(LABELS)}; it has {', '.join(batch)}")
    return {key: value for key, value in batch.items() if key not in LABELS}, batch[name]


def _pair(inputs: Any, targets: Any) -> tuple[Any, Tensor]:
    inputs, targets = as_inputs(inputs), as_targets(targets)
    parts = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    lengths = {len(value) for value in parts if isinstance(value, Tensor) and value.ndim}
    if targets.ndim == 0 or lengths != {len(targets)}:
        raise ValueError(f"{' and '.join(map(str, sorted(lengths)))} inputs come with targets {tuple(targets.shape)}")
    return inputs, targets


def _kind(value: Any) -> str:
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list)) else type(value).__name__
