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
from assay.networks.pretrained import text_config

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
    like = next(model.parameters())
    cache = _cache_of(model, states, layer)
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


def _cache_of(model: nn.Module, states: Sequence[State], layer: int) -> Any:
    """A cache whose layers are put together when the model comes to them and given up when it has passed: with all
    layers at once, few texts would fit into memory together."""
    with extra("llm", "an index"):
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

    class Kept(DynamicLayer):  # type: ignore[misc]
        """One layer's keys and values of texts of equal length, (texts, kv_heads, n, width) each."""

        def __init__(self, number: int, before: Kept | None) -> None:
            super().__init__()
            self.number, self.before = number, before

        def get_seq_length(self, *_: Any) -> int:
            return int(states[0][f"keys.{self.number}"].shape[-2])

        def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
            self.keys, self.values = self._behind("keys", key_states), self._behind("values", value_states)
            if self.before is not None and not shared:
                del self.before.keys, self.before.values
            return self.keys, self.values

        def _behind(self, kind: str, new: Tensor) -> Tensor:
            texts, heads, tail, width = new.shape
            length = self.get_seq_length()
            joined = new.new_zeros(texts, heads, length + tail, width)
            joined[:, :, length:] = new
            # The filter layer's values are not kept, since nothing attends to them.
            for row, state in enumerate(states if f"{kind}.{self.number}" in states[0] else ()):
                joined[row, :, :length] = state[f"{kind}.{self.number}"][0]
            return joined

    shared = bool(getattr(text_config(model), "num_kv_shared_layers", 0))  # later layers look at earlier ones' keys
    cache, before = DynamicCache(), None
    for number in range(layer + 1):
        before = Kept(number, before)
        cache.layers.append(before)
    return cache


def _empty_cache() -> Any:
    """One that keeps every layer whole, windows included: masks see to what a layer attends to."""
    with extra("llm", "an index"):
        from transformers import DynamicCache
    return DynamicCache()
