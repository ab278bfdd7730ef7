"""Inputs, labels and features in the forms that people have them: tensors, arrays, the mappings that tokenizers and
Hugging Face collators make, records with hidden states, tokens and feature maps. One place decides for all."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ._checks import all_finite
from ._models import logits_in

Pool = Literal["mean", "first", "flatten"]
LABELS = ("labels", "label")


def split_batch(inputs: Any, labels: Any = None) -> tuple[Any, Any]:
    """Inputs as a tensor or a dict of tensors, without the labels, and the labels: those given, those under ``labels``
    or ``label`` in a mapping, the second of a pair, or None."""
    if labels is None and isinstance(inputs, (tuple, list)) and len(inputs) == 2 and _holds_samples(inputs[0]):
        inputs, labels = inputs
    if isinstance(inputs, Mapping):
        found = next((inputs[name] for name in LABELS if name in inputs), None)
        rest = {name: as_tensor(value) for name, value in inputs.items() if name not in LABELS}
        return rest, found if labels is None else labels
    return as_tensor(inputs), labels


def _holds_samples(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, Mapping))


def as_tensor(values: Any) -> Any:
    """Arrays and lists of numbers as tensors; tensors, and what cannot be one, as they are. Doubles become the default
    precision, which is that of models."""
    if isinstance(values, Tensor):
        return values
    found = values
    with suppress(TypeError, ValueError, RuntimeError):
        found = torch.as_tensor(np.asarray(values) if isinstance(values, (list, tuple)) else values)
        if found.dtype == torch.float64:
            found = found.to(torch.get_default_dtype())
    return found


def as_classes(labels: Any, count: int) -> Tensor:
    """Labels of any integer type, one for each of ``count`` samples, as int64."""
    found = torch.as_tensor(np.asarray(labels) if not isinstance(labels, Tensor) else labels)
    whole = not (found.is_floating_point() or found.is_complex()) or bool((found == found.round()).all())
    if found.ndim != 1 or len(found) != count or not whole:
        raise ValueError(f"labels must be {count} whole numbers, one for each sample, not {tuple(found.shape)} values")
    return found.long()


def device_of(model: nn.Module) -> torch.device:
    """Where the model's first weight is, the CPU where it has none."""
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def size_of(inputs: Any) -> int:
    """How many samples a batch has: a mapping counts by its tensors, never by its keys."""
    if isinstance(inputs, Mapping):
        sizes = {len(value) for value in inputs.values() if isinstance(value, Tensor) and value.ndim}
        if len(sizes) != 1:
            raise ValueError(f"the tensors of a batch must have one first axis, not {sorted(sizes)}")
        return int(sizes.pop())
    return len(inputs)


def rows_of(inputs: Any, index: Tensor) -> Any:
    """The samples at ``index`` of a tensor or of a mapping of tensors."""
    if isinstance(inputs, Mapping):
        return {name: rows_of(value, index) for name, value in inputs.items()}
    return inputs[index.to(inputs.device)] if isinstance(inputs, Tensor) else inputs


def moved(inputs: Any, device: torch.device) -> Any:
    """Tensors on the device; the rest as it is."""
    if isinstance(inputs, Mapping):
        return {name: moved(value, device) for name, value in inputs.items()}
    return inputs.to(device) if isinstance(inputs, Tensor) else inputs


def answer(model: Any, inputs: Any) -> Any:
    """The model's output: a mapping's entries are keyword arguments."""
    return model(**inputs) if isinstance(inputs, Mapping) else model(inputs)


def features_in(output: Any, inputs: Any = None, pool: Pool = "mean") -> Tensor:
    """Feature vectors (n, dim) in a model's or a layer's output. Of a record the last hidden state counts, of a tuple
    the first entry. Tokens (n, tokens, dim) are averaged where the inputs' attention mask is one; feature maps
    (n, channels, ...) over their positions. ``first`` takes the first token, ``flatten`` keeps all entries."""
    value = getattr(output, "last_hidden_state", None)
    if value is None:
        value = output[0] if isinstance(output, (tuple, list)) else output
    if not isinstance(value, Tensor):
        with suppress(ValueError):
            value = logits_in(value)
    if not isinstance(value, Tensor) or value.ndim < 2:
        kind = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"features must be vectors, one for each sample, and the model returns {kind}")
    if value.ndim == 2 or pool == "flatten":
        return value.flatten(1)
    if value.ndim == 3:
        return _over_tokens(value, inputs, pool)
    return value.flatten(2)[..., 0] if pool == "first" else value.flatten(2).mean(-1)


def _over_tokens(states: Tensor, inputs: Any, pool: Pool) -> Tensor:
    if pool == "first":
        return states[:, 0]
    mask: Tensor | None = inputs.get("attention_mask") if isinstance(inputs, Mapping) else None
    if mask is None or mask.shape != states.shape[:2]:
        return states.mean(1)
    weights = mask.to(states.dtype).unsqueeze(-1)
    averaged: Tensor = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
    return averaged


def finite_features(features: Tensor) -> Tensor:
    """The same features; refused when an entry is infinite or NaN."""
    all_finite("features", features)
    return features


def features_and_logits(model: nn.Module, head: nn.Module | str, inputs: Any, pool: Pool) -> tuple[Tensor, Tensor]:
    """Features (n, dim) and logits of one pass. ``head`` makes logits of the model's features; or it names the module
    in the model that makes the logits, and the features are what that module is given."""
    if isinstance(head, nn.Module):
        features = features_in(answer(model, inputs), inputs, pool)
        return features, logits_in(head(features))
    seen: list[Any] = []
    hook = _inside(model, head).register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        logits = logits_in(answer(model, inputs))
    finally:
        hook.remove()
    if not seen:
        raise ValueError(f"the model never ran its head {head!r} on these inputs")
    return features_in(seen[-1], inputs, pool), logits


def features_of(model: nn.Module, head: nn.Module | str, inputs: Any, pool: Pool) -> Tensor:
    """Features (n, dim) alone: a head of its own is not run."""
    if isinstance(head, nn.Module):
        return features_in(answer(model, inputs), inputs, pool)
    return features_and_logits(model, head, inputs, pool)[0]


def logits_of(model: nn.Module, head: nn.Module | str, inputs: Any, pool: Pool) -> Tensor:
    """Logits alone: no hook is set."""
    if isinstance(head, nn.Module):
        return features_and_logits(model, head, inputs, pool)[1]
    _inside(model, head)
    return logits_in(answer(model, inputs))


def _inside(model: nn.Module, head: str) -> nn.Module:
    modules: dict[str, nn.Module] = dict(model.named_modules(remove_duplicate=False))
    if not head or head not in modules:
        raise ValueError(f"the model has no module {head!r}; it has {', '.join(name for name in modules if name)}")
    return modules[head]
