"""What would every layer keep of a prompt of one's own? One forward pass tells for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from assay.methods.gemfilter.adapter import attention_at, check_usable, layers_of
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.layers import _in_chunks, _whole
from assay.methods.gemfilter.prompts import Prompt


@torch.no_grad()
def every_layer(model: nn.Module, ids: Sequence[int], gem: GemFilter) -> list[list[int]]:
    """The positions that each layer would keep under the filter's budget and rule, in order; none for a layer without
    attention. A prompt that the budget holds whole is kept whole by all."""
    check_usable(model)
    if gem.row != "last":
        raise ValueError(f"layers are compared by their last rows; row={gem.row!r} is for one layer that you name")
    count, layers = len(layers_of(model)), list(attention_at(model))
    if isinstance(gem.keep, int) and len(ids) <= gem.keep:
        return [list(range(len(ids))) if layer in layers else [] for layer in range(count)]
    found: list[list[int]] = [[] for _ in range(count)]
    chosen = replace(gem, layer=layers[0])

    def note(_: int, layer: int, scores: Tensor) -> None:
        found[layer] = sorted(chosen.best(scores).tolist())

    prompt = Prompt(torch.tensor([list(ids)], device=next(model.parameters()).device))
    layout = chosen.layout(model, len(ids))
    if layout is None:
        _whole(model, prompt, [chosen], layers, note)
    else:
        _in_chunks(model, prompt, layout, [chosen], layers, note)
    return found
