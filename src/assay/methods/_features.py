"""The features of a model that belongs to somebody else: where its head is, what reaches it, and as which matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ._models import evaluating

Side = Literal["input", "output"]


def find_layer(model: nn.Module, layer: str | None) -> tuple[str, nn.Module]:
    """The module of this name; with None the classification head: what timm's ``get_classifier`` says, else the last
    linear layer that the model registers."""
    modules = dict(model.named_modules(remove_duplicate=False))
    if layer is not None:
        if layer not in modules:
            raise ValueError(f"the model has no layer {layer!r}; it has {', '.join(name for name in modules if name)}")
        return layer, modules[layer]
    asked = getattr(model, "get_classifier", None)
    said = asked() if callable(asked) else None
    linear = [(name, module) for name, module in modules.items() if isinstance(module, nn.Linear)]
    named = [(name, module) for name, module in linear if module is said] or linear[-1:]
    if not named:
        raise ValueError("the model has no linear layer that could be its head: name the layer")
    return named[0]


def as_matrix(features: Tensor) -> Tensor:
    """(rows, dim). Each token of (batch, tokens, dim) is a row; the maps of an image (batch, channels, height, width)
    are one row."""
    if features.ndim < 2 or not features.numel():
        raise ValueError(f"features must be (rows, dim) with at least one of each, not {tuple(features.shape)}")
    if not features.is_floating_point():
        raise ValueError(f"features must be real floating-point numbers, not {features.dtype}")
    return features.flatten(0, 1) if features.ndim == 3 else features.flatten(1)


def features_in(value: Any) -> Tensor:
    """The tensor that a layer was given or returned: itself, the pooled states of a record as Hugging Face models
    return it (else its last states), or the first tensor among several."""
    for name in ("pooler_output", "last_hidden_state"):
        if isinstance(found := getattr(value, name, None), Tensor):
            return found
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        value = next((each for each in value if isinstance(each, Tensor)), None)
    if not isinstance(value, Tensor):
        raise ValueError(f"the layer passes no tensor on but {type(value).__name__}: name another one")
    return value


@contextmanager
def watching(layer: nn.Module, at: Side, see: Any) -> Iterator[None]:
    """Within the context every pass through the layer hands its features to ``see``."""

    def hook(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        see(features_in((*args, *kwargs.values()) if at == "input" else output))

    handle = layer.register_forward_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def layer_features(model: nn.Module, layer: str | None, batches: Any, at: Side = "input") -> Iterator[Tensor]:
    """The features (rows, dim) that reach a layer, batch by batch, in evaluation mode and without gradients. Batches
    are tensors, arrays, dicts as Hugging Face models take them, pairs (inputs, labels), or an iterable of these such
    as a DataLoader."""
    _, module = find_layer(model, layer)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    for batch in batches_of(batches):
        inputs = _inputs(batch)
        seen: list[Tensor] = []
        with torch.no_grad(), evaluating(model), watching(module, at, seen.append):
            if isinstance(inputs, Mapping):
                model(**{key: each.to(device) for key, each in inputs.items()})
            else:
                model(inputs.to(device))
        if not seen:
            raise ValueError("the layer took no part in the pass: name another one")
        yield as_matrix(torch.cat([as_matrix(each) for each in seen]))


def batches_of(batches: Any) -> Iterable[Any]:
    """One batch as a list of one; what yields batches as it is."""
    one = isinstance(batches, (Tensor, np.ndarray, Mapping)) or (
        isinstance(batches, tuple) and len(batches) == 2 and isinstance(batches[0], (Tensor, np.ndarray, Mapping))
    )
    return [batches] if one else batches


def _inputs(batch: Any) -> Any:
    inputs = batch[0] if isinstance(batch, (tuple, list)) else batch
    if isinstance(inputs, Mapping):
        return {key: torch.as_tensor(each) for key, each in inputs.items() if key not in ("labels", "label")}
    return torch.as_tensor(inputs)
