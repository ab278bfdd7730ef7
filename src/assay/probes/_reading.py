"""Features of whole data sets, read from models, functions and layers; labels beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from assay.methods._checks import all_finite, whole
from assay.methods._models import evaluating
from assay.methods._samples import (
    Pool,
    answer,
    as_classes,
    device_of,
    features_in,
    moved,
    rows_of,
    size_of,
    split_batch,
)

Representation = nn.Module | Callable[[Any], Any] | Tensor


def batches_of(data: Any, size: int) -> tuple[list[Any], Tensor | None]:
    """Batches of inputs, and the labels (n,) where the data have any. A data loader is gone through once and its
    batches are kept, so that whoever reads them reads the same samples in the same order."""
    whole("batch_size", size, 1)
    if isinstance(data, DataLoader):
        pairs = [split_batch(batch) for batch in data]
        labels = [as_classes(found, size_of(inputs)) for inputs, found in pairs if found is not None]
        if labels and len(labels) != len(pairs):
            raise ValueError("some batches of the data loader have labels and some have none")
        return [inputs for inputs, _ in pairs], torch.cat(labels) if labels else None
    inputs, found = split_batch(data)
    if not isinstance(inputs, (Tensor, Mapping)):  # texts, say, for a function that knows what to do with them
        parts = [inputs[start : start + size] for start in range(0, len(inputs), size)]
    else:
        order = torch.arange(size_of(inputs))
        parts = [rows_of(inputs, index) for index in torch.split(order, size)]
    count = sum(size_of(part) for part in parts)
    return parts, None if found is None else as_classes(found, count).cpu()


def labelled(data: Any, size: int, what: str) -> tuple[list[Any], Tensor]:
    """Batches and labels; refused without labels."""
    batches, labels = batches_of(data, size)
    if labels is None:
        raise ValueError(f"{what} must be (inputs, labels), a mapping with labels, or a data loader of either")
    return batches, labels


def features_over(representation: Representation, batches: Sequence[Any], pool: Pool = "mean") -> Tensor:
    """Features (n, dim) of all batches on the CPU. A module runs in evaluation mode, without gradients, and gets its
    modes back; a tensor of features is taken as it is."""
    if isinstance(representation, Tensor):
        found = features_in(representation, None, pool).detach().cpu()
    else:
        found = torch.cat(list(_each(representation, batches, pool)))
    all_finite("features", found)
    return found


def _each(representation: Any, batches: Sequence[Any], pool: Pool) -> Iterator[Tensor]:
    module = isinstance(representation, nn.Module)
    with torch.no_grad(), evaluating(representation if module else nn.Module()):
        for batch in batches:
            batch = moved(batch, device_of(representation)) if module else batch
            output = answer(representation, batch) if module else representation(batch)
            yield features_in(torch.as_tensor(output) if not module else output, batch, pool).detach().cpu()


@contextmanager
def watching(model: nn.Module, layers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Within the context every pass of the model leaves the outputs of these layers in the mapping; hooks come off
    whatever is raised inside."""
    modules = dict(model.named_modules(remove_duplicate=False))
    if unknown := [name for name in layers if name not in modules]:
        raise ValueError(f"the model has no layer {unknown[0]!r}; it has {', '.join(name for name in modules if name)}")
    seen: dict[str, Any] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            # A copy: the next layer may be an activation that works in place.
            seen[name] = output.clone() if isinstance(output, Tensor) else output

        return hook

    hooks = [modules[name].register_forward_hook(keep(name)) for name in layers]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def blocks_of(model: nn.Module) -> list[str]:
    """The names of a model's blocks: the entries of its longest module list or sequence, else its children."""
    lists = {
        name: module for name, module in model.named_modules() if isinstance(module, (nn.ModuleList, nn.Sequential))
    }
    if lists:
        name, longest = max(lists.items(), key=lambda each: len(each[1]))
        return [f"{name}.{own}" if name else own for own, _ in longest.named_children()]
    return [name for name, _ in model.named_children()] or [""]


def layer_features(model: nn.Module, layers: Sequence[str], batch: Any, pool: Pool) -> dict[str, Tensor]:
    """Features (n, dim) of every layer from one pass over a batch."""
    with torch.no_grad(), evaluating(model), watching(model, layers) as seen:
        inputs = moved(batch, device_of(model))
        answer(model, inputs)
        if silent := [name for name in layers if name not in seen]:
            raise ValueError(f"the model never ran its layer {silent[0]!r} on these inputs")
        return {name: features_in(seen[name], inputs, pool).detach().cpu() for name in layers}
