"""Inputs and labels in the forms that people have them: tensors, arrays, the mappings that tokenizers and Hugging Face
collators make, data loaders and lists of batches. One place decides what each of them means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._checks import all_finite, whole

LABELS = ("labels", "label")


def split_batch(inputs: Any, labels: Any = None) -> tuple[Any, Any]:
    """Inputs as a tensor or a dict of tensors, without the labels, and the labels: those given, those under ``labels``
    or ``label`` in a mapping, the second of a pair, or None."""
    if labels is None and _is_pair(inputs):
        inputs, labels = inputs
    if isinstance(inputs, Mapping):
        found = next((inputs[name] for name in LABELS if name in inputs), None)
        rest = {name: as_tensor(value) for name, value in inputs.items() if name not in LABELS}
        return rest, found if labels is None else labels
    return as_tensor(inputs), labels


def _is_pair(value: Any) -> bool:
    """(inputs, labels), as data loaders give it too; two mappings are two batches."""
    pair = isinstance(value, (tuple, list)) and len(value) == 2
    return pair and isinstance(value[0], (Tensor, np.ndarray, Mapping)) and not isinstance(value[1], Mapping)


def as_tensor(values: Any) -> Any:
    """Arrays and lists of numbers as tensors; tensors, and what cannot be one, as they are. Arrays of floats get the
    default precision, which is that of models."""
    if isinstance(values, Tensor):
        return values
    found = values
    with suppress(TypeError, ValueError, RuntimeError):
        found = torch.as_tensor(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else np.asarray(values))
        if found.is_floating_point():
            found = found.to(torch.get_default_dtype())
    return found


def as_targets(values: Any) -> Tensor:
    """Targets (n, ...): integers of any type as int64, floats in torch's default type; refused when not finite."""
    try:
        found = torch.as_tensor(values).detach()
    except (TypeError, ValueError, RuntimeError) as problem:
        raise ValueError(f"targets must be integers or real numbers, and these are none: {values!r:.60}") from problem
    if found.is_complex():
        raise ValueError("targets must be integers or real numbers, and these are complex")
    if not found.is_floating_point():
        return found.long()
    all_finite("the targets", found)
    return found.to(torch.get_default_dtype())


def as_classes(labels: Any, count: int) -> Tensor:
    """Labels of any integer type, one for each of ``count`` samples, as int64."""
    found = torch.as_tensor(np.asarray(labels) if not isinstance(labels, Tensor) else labels)
    complete = not (found.is_floating_point() or found.is_complex()) or bool((found == found.round()).all())
    if found.ndim != 1 or len(found) != count or not complete:
        raise ValueError(f"labels must be {count} whole numbers, one for each sample, not {tuple(found.shape)} values")
    return found.long()


def checked(inputs: Any) -> Any:
    """The same inputs; refused where a floating-point entry is infinite or NaN."""
    parts = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    all_finite("the inputs", *(part for part in parts if isinstance(part, Tensor) and part.is_floating_point()))
    return inputs


def size_of(inputs: Any) -> int:
    """How many samples a batch has: a mapping counts by its tensors, never by its keys."""
    if isinstance(inputs, Mapping):
        sizes = {len(value) for value in inputs.values() if isinstance(value, Tensor) and value.ndim}
        if len(sizes) != 1:
            raise ValueError(f"the tensors of a batch must have one first axis, not {sorted(sizes)}")
        return int(sizes.pop())
    return len(inputs)


def rows_of(inputs: Any, rows: Any) -> Any:
    """The chosen samples (a slice, a mask or indices) of a tensor or of every tensor in a mapping."""
    if isinstance(inputs, Mapping):
        return {name: rows_of(value, rows) for name, value in inputs.items()}
    rows = rows.to(inputs.device) if isinstance(rows, Tensor) and isinstance(inputs, Tensor) else rows
    return inputs[rows] if isinstance(inputs, Tensor) and inputs.ndim else inputs


def moved(inputs: Any, device: torch.device) -> Any:
    """Tensors on the device; the rest as it is."""
    if isinstance(inputs, Mapping):
        return {name: moved(value, device) for name, value in inputs.items()}
    if not isinstance(inputs, Tensor):
        return inputs
    there = inputs.to(device)
    return there.clone() if there.is_inference() else there  # gradients are not taken through tensors of that mode


def parts_of(data: Any, labels: Any = None) -> Iterable[tuple[Any, Any]]:
    """(inputs, labels or None) of one batch, or of every batch of a data loader, a list or a generator; a generator,
    which can be read but once, is kept."""
    # A data loader's batch may be a list, but a list of two tensors of samples is a list of batches.
    pair = _is_pair(data) and (isinstance(data, tuple) or getattr(data[1], "ndim", 1) < 2)
    single = labels is not None or isinstance(data, (Tensor, np.ndarray, Mapping)) or pair
    if single or not isinstance(data, Iterable):
        return [split_batch(data, labels)]
    if isinstance(data, Sequence) and len(data) and not isinstance(data[0], (Tensor, np.ndarray, Mapping, tuple, list)):
        return [(data, None)]  # texts, say, for a function that knows what to do with them
    return _Parts(list(data) if isinstance(data, Iterator) else data)


class _Parts:
    """Batches, split each time that they are gone through."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.batches:
            if isinstance(batch, (tuple, list)) and not _is_pair(batch) and len(batch) != 1:
                kind = f"{type(batch).__name__} of {len(batch)}"
                raise ValueError(f"a batch is a pair (inputs, targets) or a mapping with labels, not a {kind}")
            yield split_batch(batch[0] if isinstance(batch, (tuple, list)) and len(batch) == 1 else batch)


class Labelled:
    """Batches (inputs, targets) on a device, at most ``limit`` samples of them, as often as they are asked for.

    ``targets`` may be left out where ``data`` has them: a pair (inputs, targets), a mapping with ``labels``, or batches
    of either kind. Labels of any integer type come out as int64; inputs that are not finite are refused.
    """

    def __init__(
        self, data: Any, targets: Any = None, *, size: int, device: torch.device, limit: int | None = None
    ) -> None:
        if not isinstance(data, Iterable):
            raise ValueError(f"{type(data).__name__} alone has no targets: give them as well")
        self.parts = parts_of(data, targets)
        self.whole = _pair(*self.parts[0]) if isinstance(self.parts, list) else None
        self.size, self.device, self.limit = size, device, limit

    def __iter__(self) -> Iterator[tuple[Any, Tensor]]:
        seen = 0
        for inputs, targets in self._stored():
            left = len(targets) if self.limit is None else self.limit - seen
            if self.limit is not None and left <= 0:
                return
            for start in range(0, min(left, len(targets)), self.size):
                rows = slice(start, min(start + self.size, left))
                yield moved(rows_of(inputs, rows), self.device), targets[rows].to(self.device)
            seen += len(targets)
        if not seen:
            raise ValueError("the data hold no sample")

    def targets(self) -> Tensor:
        """The targets of all samples, in order."""
        return torch.cat([targets for _, targets in self._stored()])[: self.limit]

    def _stored(self) -> Iterator[tuple[Any, Tensor]]:
        if self.whole is not None:
            yield self.whole
        else:
            yield from (_pair(*part) for part in self.parts)


def _pair(inputs: Any, targets: Any) -> tuple[Any, Tensor]:
    if targets is None and isinstance(inputs, Mapping):
        raise ValueError(f"a mapping needs labels under one of {', '.join(LABELS)}; it has {', '.join(inputs)}")
    if targets is None:
        raise ValueError(f"{type(inputs).__name__} alone has no targets: give them as well")
    inputs, targets = checked(inputs), as_targets(targets)
    parts = inputs.values() if isinstance(inputs, Mapping) else [inputs]
    lengths = {len(value) for value in parts if isinstance(value, Tensor) and value.ndim}
    if targets.ndim == 0 or lengths != {len(targets)}:
        raise ValueError(f"{' and '.join(map(str, sorted(lengths)))} inputs come with targets {tuple(targets.shape)}")
    return inputs, targets


def batches_of(data: Any, size: int) -> tuple[list[Any], Tensor | None]:
    """Batches of inputs, and the labels (n,) where the data have any. A data loader is gone through once and its
    batches are kept, so that whoever reads them reads the same samples in the same order."""
    whole("batch_size", size, 1)
    parts = parts_of(data)
    if isinstance(parts, list):
        ((inputs, found),) = parts
        starts = range(0, size_of(inputs), size)
        split = isinstance(inputs, (Tensor, Mapping))
        pieces = [rows_of(inputs, slice(i, i + size)) if split else inputs[i : i + size] for i in starts]
        return pieces, None if found is None else as_classes(found, size_of(inputs)).cpu()
    pairs = list(parts)
    labels = [as_classes(found, size_of(inputs)).cpu() for inputs, found in pairs if found is not None]
    if labels and len(labels) != len(pairs):
        raise ValueError("some batches of the data loader have labels and some have none")
    return [inputs for inputs, _ in pairs], torch.cat(labels) if labels else None


def labelled(data: Any, size: int, what: str) -> tuple[list[Any], Tensor]:
    """Batches and labels; refused without labels."""
    batches, labels = batches_of(data, size)
    if labels is None:
        raise ValueError(f"{what} must be (inputs, labels), a mapping with labels, or a data loader of either")
    return batches, labels


def whole_set(data: Any, what: str, device: torch.device) -> tuple[Any, Tensor]:
    """All inputs and integer labels or real targets at once, on a device, for whoever draws batches of their own; the
    batches of a data loader are joined. What is not finite, and what has no labels, is refused."""
    pairs = [(checked(inputs), found) for inputs, found in parts_of(data)]
    if not pairs or any(found is None for _, found in pairs):
        raise ValueError(f"{what} must be (inputs, labels), a mapping with labels, or a data loader of either")
    inputs = joined([inputs for inputs, _ in pairs])
    targets = torch.cat([as_targets(found) for _, found in pairs])
    if not targets.numel():
        raise ValueError(f"{what} holds no sample")
    if targets.ndim == 0 or size_of(inputs) != len(targets):
        raise ValueError(f"{size_of(inputs)} inputs come with targets {tuple(targets.shape)} in {what}")
    return moved(inputs, device), targets.to(device)


def joined(batches: Sequence[Any]) -> Any:
    """Batches as one, along the axis of samples."""
    if len(batches) == 1:
        return batches[0]
    if isinstance(batches[0], Mapping):
        return {name: joined([batch[name] for batch in batches]) for name in batches[0]}
    return torch.cat(list(batches)) if isinstance(batches[0], Tensor) and batches[0].ndim else batches[0]
