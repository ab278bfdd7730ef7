"""What a person is told before a filter does something slow or doubtful."""

from __future__ import annotations

import warnings

from torch import nn

from assay.methods.gemfilter.adapter import sliding_window
from assay.methods.gemfilter.chunks import shared_tokens
from assay.methods.gemfilter.prompts import Prompt
from assay.networks.pretrained import context_length


class Once:
    """Says before the first answer what it waits for: the first that is heard of a layer being measured."""

    said = False

    def __call__(self, text: str) -> None:
        if not self.said:
            warnings.warn(f"layer='auto' is measured first, and remembered then: {text}", stacklevel=5)
        self.said = True


def too_far(model: nn.Module, layer: int, length: int) -> str | None:
    """That a layer does not see all that is read at once."""
    if (window := sliding_window(model, layer)) is None or window >= length:
        return None
    return (
        f"layer {layer} attends to the last {window} tokens only, so its scores of earlier ones are untrained: choose "
        "a layer with full attention"
    )


def too_long(model: nn.Module, length: int) -> str | None:
    """That more is read at once than the model was trained for."""
    if length <= (context := context_length(model, length)):
        return None
    return (
        f"{length:,} tokens at once exceed the {context:,} that the model was trained for: GemFilter's chunk='auto' "
        "reads a prompt of any length in pieces"
    )


def warn_too_long(model: nn.Module, prompt: Prompt, stacklevel: int = 3) -> None:
    """Warn whoever called a method that reads prompts whole, where the longest exceeds the context."""
    if wrong := too_long(model, prompt.longest):
        warnings.warn(wrong, stacklevel=stacklevel)


def less_shared(size: int, overlap: int | None) -> str | None:
    """That an automatic chunk is too small for the overlap that was asked for."""
    if overlap is None or (shared := shared_tokens(size, overlap, auto=True)) == overlap:
        return None
    return (
        f"neighbours share {shared} and not {overlap} tokens, half of the {size} that this model's context leaves an "
        "automatic chunk: give the chunk a size for more"
    )


def no_room(model: nn.Module, kept: int, new: int) -> str | None:
    """That the kept tokens and the answer behind them, 0 where its length is not known, are more than the model was
    trained for."""
    if kept + new <= (context := context_length(model, kept + new)):
        return None
    read = f"{kept:,} kept tokens and {new:,} new ones" if new else f"{kept:,} kept tokens"
    return f"{read} exceed the {context:,} that the model was trained for: a smaller keep leaves room for the answer"
