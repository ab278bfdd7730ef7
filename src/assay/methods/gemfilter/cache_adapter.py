"""The other private touch of transformers: a key-value cache that holds fewer tokens than the model has seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache as memoize
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods.gemfilter.adapter import attentions_of, known_family, project_queries, sliding_window


@memoize
def _trimmed_layer() -> type[Any]:
    """A cache layer with two lengths: tokens stored, and tokens seen, from which positions go on."""
    from transformers.cache_utils import DynamicLayer

    class TrimmedLayer(DynamicLayer):  # type: ignore[misc]
        seen: int = 0
        keys: Any
        values: Any

        @property
        def stored(self) -> int:
            return 0 if self.keys is None or self.keys.numel() == 0 else int(self.keys.shape[-2])

        def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
            self.seen += key_states.shape[-2]
            updated: tuple[Tensor, Tensor] = super().update(key_states, value_states, *args, **kwargs)
            return updated

        def get_seq_length(self, *_: Any) -> int:
            return self.seen

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            return self.stored + query_length, self.seen - self.stored

        def crop(self, *_: Any) -> None:
            raise ValueError("a compressed cache cannot be rolled back: assisted decoding does not go with it")

        def gather(self, index: Tensor) -> None:
            """Keep the positions ``index`` (batch, kv_heads, kept) of what is stored."""
            wide = index[..., None].expand(-1, -1, -1, self.keys.shape[-1])
            self.keys = self.keys.gather(2, wide)
            self.values = self.values.gather(2, index[..., None].expand(-1, -1, -1, self.values.shape[-1]))

    return TrimmedLayer


def trimmed_cache(model: nn.Module) -> Any:
    """An empty cache for the model. Layers with a sliding window keep their own kind and are never compressed."""
    from transformers.cache_utils import Cache, DynamicSlidingWindowLayer

    layers = []
    for layer in range(len(attentions_of(model))):
        window = sliding_window(model, layer)
        layers.append(_trimmed_layer()() if window is None else DynamicSlidingWindowLayer(sliding_window=window))
    return Cache(layers=layers)


def trimmed_copy(model: nn.Module, full: Any, index: Callable[[int], Tensor | None]) -> Any:
    """A new cache with the positions ``index(layer)`` of a full one; None keeps a layer whole. Tensors that are kept
    whole are shared: decoding appends to new ones."""
    made = trimmed_cache(model)
    for layer, (old, new) in enumerate(zip(full.layers, made.layers, strict=True)):
        new.__dict__.update(old.__dict__)
        if (wanted := index(layer)) is not None and compressible(new):
            new.gather(wanted)
    return made


def untouched_copy(model: nn.Module, cache: Any) -> Any:
    """A cache that can be decoded from while ``cache`` stays as it is."""
    return trimmed_copy(model, cache, lambda _: None)


def compressible(layer: Any) -> bool:
    """Whether a cache layer is one of ours."""
    return isinstance(layer, _trimmed_layer())


def stored_bytes(cache: Any) -> int:
    """Bytes of the keys and values that a cache holds."""
    tensors = [part for layer in cache.layers for part in (layer.keys, layer.values) if part is not None]
    return sum(part.numel() * part.element_size() for part in tensors)


@dataclass(frozen=True)
class Attended:
    """A layer right after its attention ran: its place, its cache, and a way to its queries."""

    index: int
    attention: Any
    cache_layer: Any
    hidden: Tensor
    rotary: tuple[Tensor, Tensor]

    @property
    def keys(self) -> Tensor:
        """What the cache holds: (batch, kv_heads, stored, width)."""
        keys: Tensor = self.cache_layer.keys
        return keys

    def queries(self, start: int, stop: int) -> Tensor:
        """Rotated queries of the tokens ``start..stop`` of this forward pass: (batch, heads, rows, width)."""
        part = tuple(side[:, start:stop] for side in self.rotary)
        return project_queries(self.attention, self.hidden[:, start:stop], (part[0], part[1]))


@contextmanager
def after_attention(model: nn.Module, cache: Any, act: Callable[[Attended], None]) -> Iterator[None]:
    """Call ``act`` after every layer's attention, while that layer's cache is complete and the next is not there."""
    attentions = attentions_of(model)
    if not all(known_family(attention) for attention in attentions):
        kind = type(attentions[0]).__name__
        raise ValueError(f"cache compression does not know the projections of {kind}; GemFilter itself works without")

    def hook(index: int) -> Callable[..., None]:
        def look(attention: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], _: Any) -> None:
            if compressible(cache.layers[index]):
                hidden = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
                with torch.no_grad():
                    act(Attended(index, attention, cache.layers[index], hidden, kwargs["position_embeddings"]))

        return look

    handles = [
        attention.register_forward_hook(hook(index), with_kwargs=True) for index, attention in enumerate(attentions)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
