"""Read a text up to a layer and keep what is needed to read on; read a tail behind many such texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from assay._extras import extra
from assay.methods._precision import uncached_casts
from assay.methods.gemfilter.adapter.decoder import attention_at, decoder_of, layers_of
from assay.methods.gemfilter.adapter.interface import attention_seen
from assay.methods.gemfilter.adapter.memory import chunked_mlp, rotation_kept
from assay.methods.gemfilter.adapter.projecting import Projected
from assay.methods.gemfilter.adapter.reading import Stop

#: What is kept of a text: keys and values of every layer below the filter layer, and the filter layer's keys, each
#: (batch, kv_heads, n, width), by the names ``keys.3`` and ``values.3``.
State = Mapping[str, Tensor]


def can_continue(model: nn.Module, layer: int) -> bool:
    """Whether every layer up to ``layer`` remembers a text by keys and values alone. Recurrent layers do not."""
    return all(number in attention_at(model) for number in range(layer + 1))


@torch.no_grad()
def read_state(model: nn.Module, input_ids: Tensor, layer: int, *, mlp_chunk: int | None = None) -> dict[str, Tensor]:
    """Run texts (batch, n) up to the projections of ``layer``."""
    cache = _empty_cache()
    _run(model, input_ids, cache, layer, lambda *_: None, mlp_chunk)
    state = {f"keys.{number}": cache.layers[number].keys for number in range(layer + 1)}
    return state | {f"values.{number}": cache.layers[number].values for number in range(layer)}


@torch.no_grad()
def read_tail(model: nn.Module, states: Sequence[State], tail: Tensor, layer: int, rows: int) -> Projected:
    """Run one tail (t,) behind texts of equal length, and return the queries of its last ``rows`` tokens and all keys
    of ``layer``, those of the texts in front: what a pass over text and tail together has there."""
    cache, like = _empty_cache(), next(model.parameters())
    for number in range(layer + 1):
        keys = _stacked(states, f"keys.{number}", like)
        # The filter layer's values are never attended to: anything of their shape will do.
        values = keys if number == layer else _stacked(states, f"values.{number}", like)
        cache.update(keys, values, number)
    found: list[Projected] = []

    _run(model, tail.to(like.device).expand(len(states), -1), cache, layer, found.append, None)
    return replace(found[0], queries=found[0].queries[:, :, -rows:])


def _run(model: nn.Module, ids: Tensor, cache: Any, layer: int, see: Any, mlp_chunk: int | None) -> None:
    def look(number: int, projected: Projected) -> None:
        if number == layer:
            see(projected)
            raise Stop

    with uncached_casts(), rotation_kept(model), attention_seen(model, look), chunked_mlp(model, mlp_chunk, layer):
        try:
            decoder_of(model)(input_ids=ids, past_key_values=cache, use_cache=True)
        except Stop:
            return
    raise ValueError(f"layer {layer} was never reached among {len(layers_of(model))} layers")


def _stacked(states: Sequence[State], name: str, like: Tensor) -> Tensor:
    return torch.cat([state[name].to(like.device, like.dtype) for state in states])


def _empty_cache() -> Any:
    """One that keeps every layer whole, windows included: masks see to what a layer attends to."""
    with extra("llm", "an index"):
        from transformers import DynamicCache
    return DynamicCache()
