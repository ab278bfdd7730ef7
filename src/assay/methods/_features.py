"""The features of a model that belongs to somebody else: where its head is, what reaches it, and as which matrix or as
which vectors, one for each sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ._checks import all_finite
from ._data import moved, parts_of
from ._models import answer, device_of, evaluating, logits_in, module_named, output_of, unknown

Side = Literal["input", "output"]
Pool = Literal["mean", "first", "flatten"]


def find_layer(model: nn.Module, layer: str | None) -> tuple[str, nn.Module]:
    """The module of this name; with None the classification head: what timm's ``get_classifier`` says, else the last
    linear layer that the model registers."""
    if layer is not None:
        return layer, module_named(model, layer)
    asked = getattr(model, "get_classifier", None)
    said = asked() if callable(asked) else None
    modules = model.named_modules(remove_duplicate=False)
    linear = [(name, module) for name, module in modules if isinstance(module, nn.Linear)]
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


def tensor_in(value: Any) -> Tensor:
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
def watching(model: nn.Module, layers: Sequence[str], at: Side = "output") -> Iterator[dict[str, list[Any]]]:
    """Within the context every pass of the model leaves in the mapping what these layers were given or returned, run by
    run; hooks come off whatever is raised inside."""
    seen: dict[str, list[Any]] = {name: [] for name in layers}

    def keep(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            value = (*args, *kwargs.values()) if at == "input" else output
            # A copy: the next layer may be an activation that works in place.
            seen[name].append(value.clone() if isinstance(value, Tensor) else value)

        return hook

    chosen = {name: module_named(model, name) for name in layers}
    hooks = [module.register_forward_hook(keep(name), with_kwargs=True) for name, module in chosen.items()]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def layer_features(model: nn.Module, layer: str | None, data: Any, at: Side = "input") -> Iterator[Tensor]:
    """The features (rows, dim) that reach a layer, batch by batch, in evaluation mode and without gradients. Data are
    tensors, arrays, dicts as Hugging Face models take them, pairs (inputs, labels), or an iterable of these such as a
    DataLoader."""
    name, _ = find_layer(model, layer)
    for inputs, _ in parts_of(data):
        with torch.no_grad(), evaluating(model), watching(model, [name], at) as seen:
            output_of(model, moved(inputs, device_of(model)))
        if not seen[name]:
            raise ValueError("the layer took no part in the pass: name another one")
        yield torch.cat([as_matrix(tensor_in(run)) for run in seen[name]])


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
        features = features_in(output_of(model, inputs), inputs, pool)
        return features, logits_in(head(features))
    seen: list[Any] = []
    # Before the head, and not a copy: gradients go through what it is given.
    hook = _inside(model, head).register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        logits = answer(model, inputs)
    finally:
        hook.remove()
    if not seen:
        raise ValueError(f"the model never ran its head {head!r} on these inputs")
    return features_in(seen[-1], inputs, pool), logits


def features_of(model: nn.Module, head: nn.Module | str, inputs: Any, pool: Pool) -> Tensor:
    """Features (n, dim) alone: a head of its own is not run."""
    if isinstance(head, nn.Module):
        return features_in(output_of(model, inputs), inputs, pool)
    return features_and_logits(model, head, inputs, pool)[0]


def logits_of(model: nn.Module, head: nn.Module | str, inputs: Any, pool: Pool) -> Tensor:
    """Logits alone: no hook is set."""
    if isinstance(head, nn.Module):
        return features_and_logits(model, head, inputs, pool)[1]
    _inside(model, head)
    return answer(model, inputs)


def _inside(model: nn.Module, head: str) -> nn.Module:
    if not head:
        raise unknown("module", head, dict(model.named_modules()))
    return module_named(model, head, "module")
