"""A model's linear head: find it, and replace it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from assay.methods._models import answer, evaluating, unknown

from .sources import Source

HEADS = ("classifier", "score", "fc", "head")


def head_name(model: nn.Module, head: str | None = None, source: Source | None = None) -> str:
    """The name of the last linear layer: the one given; with a source, the one that makes the logits of its first
    samples; or one with a usual name, or the last one in the model."""
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if head is not None:
        if head not in names:
            raise unknown("linear layer", head, names)
        return head
    if not names:
        raise ValueError("the model has no linear layer that could be its head")
    usual = [name for name in names if name.split(".")[0] in HEADS]
    likely: str = (usual or names)[-1]
    return likely if source is None or len(names) == 1 else _makes_the_logits(model, names, likely, source)


@torch.no_grad()
def _makes_the_logits(model: nn.Module, names: list[str], likely: str, source: Source) -> str:
    """The linear layer whose output the model returns. Where something comes after all of them (a softmax, a choice of
    positions), one of as many outputs as there are logits: the likely one, or the last that ran."""
    outputs: dict[str, Any] = {}
    hooks = [
        model.get_submodule(name).register_forward_hook(lambda _, __, out, name=name: outputs.update({name: out}))
        for name in names
    ]
    try:
        with evaluating(model):
            logits = answer(model, source.few(next(model.parameters()).device))
    finally:
        for hook in hooks:
            hook.remove()
    for name, out in reversed(outputs.items()):
        if out is logits:
            return name
    wide = [name for name, out in outputs.items() if out.shape[-1] == logits.shape[-1]]
    return likely if likely in wide or not wide else wide[-1]


def swap_head(model: nn.Module, classes: int, *, generator: torch.Generator, head: str | None = None) -> nn.Module:
    """The same model with a new linear head for ``classes`` (in place; weights N(0, 1/fan-in), bias 0)."""
    name = head_name(model, head)
    old: nn.Linear = model.get_submodule(name)  # type: ignore[assignment]
    # Not initialised, which would draw from torch's global generator for nothing.
    new: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Linear, old.in_features, classes, bias=old.bias is not None, device=old.weight.device, dtype=old.weight.dtype
    )
    drawn = torch.randn(classes, old.in_features, generator=generator) * old.in_features**-0.5
    with torch.no_grad():
        new.weight.copy_(drawn)
        if new.bias is not None:
            new.bias.zero_()
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, new)
    for holder in (model, getattr(model, "config", None)):  # Hugging Face models keep the number in both
        if hasattr(holder, "num_labels"):
            holder.num_labels = classes  # type: ignore[union-attr]
    return model
