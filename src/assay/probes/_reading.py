"""Features of whole data sets, read from models, functions and layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods._checks import all_finite
from assay.methods._data import moved
from assay.methods._features import Pool, features_in, watching
from assay.methods._models import device_of, evaluating, output_of

Representation = nn.Module | Callable[[Any], Any] | Tensor


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
            output = output_of(representation, batch) if module else representation(batch)
            yield features_in(torch.as_tensor(output) if not module else output, batch, pool).detach().cpu()


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
        output_of(model, inputs)
        if silent := [name for name in layers if not seen[name]]:
            raise ValueError(f"the model never ran its layer {silent[0]!r} on these inputs")
        return {name: features_in(seen[name][-1], inputs, pool).detach().cpu() for name in layers}
