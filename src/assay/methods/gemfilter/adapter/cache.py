"""A key-value cache that holds fewer tokens than the model has seen, and a look at every layer as it fills."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache as memoize
from typing import Any

import torch
from torch import Tensor, nn

from assay._extras import extra
from assay.methods.gemfilter.adapter.decoder import attentions_of, layers_of, sliding_window
from assay.methods.gemfilter.adapter.interface import attention_seen
from assay.methods.gemfilter.adapter.projecting import Projected, known_family, project_queries


@memoize
def _trimmed_layer() -> type[Any]:
    """A cache layer with two lengths: tokens stored, and tokens seen, from which positions go on."""
    with extra("llm", "a compressed cache"):
        from transformers.cache_utils import DynamicLayer

    class TrimmedLayer(DynamicLayer):  # type: ignore[misc]
        seen: int = 0
        repeats: int = 1
        told: bool = False
        keys: Any
        values: Any

        @property
        def stored(self) -> int:
            return 0 if self.keys is None or self.keys.numel() == 0 else int(self.keys.shape[-2])

        def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
            self.seen += key_states.shape[-2]
            if self.repeats > 1:
                if not self.told:
                    raise ValueError(
                        "a cache with keys for every query head goes on only within the method that made it: begin "
                        "the next turn with the whole prompt, or without per_query_head"
                    )
                key_states, value_states = (
                    part.repeat_interleave(self.repeats, dim=1) for part in (key_states, value_states)
                )
            updated: tuple[Tensor, Tensor] = super().update(key_states, value_states, *args, **kwargs)
            return updated

        def get_seq_length(self, *_: Any) -> int:
            return self.seen

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            return self.stored + query_length, self.seen - self.stored

        def crop(self, *_: Any) -> None:
            raise ValueError("a compressed cache cannot be rolled back: assisted decoding does not go with it")

        def gather(self, index: Tensor) -> None:
            """Keep the positions ``index`` (batch, heads, kept) of what is stored. With an index set per query head
            every head gets keys and values of its own from then on."""
            self.repeats *= index.shape[1] // self.keys.shape[1]
            self.keys, self.values = _gathered(self.keys, index), _gathered(self.values, index)

    return TrimmedLayer


def _gathered(states: Tensor, index: Tensor) -> Tensor:
    """(batch, kv_heads, n, width) at (batch, heads, kept) -> (batch, heads, kept, width). Heads of one group read the
    same states, which are not repeated for it."""
    batch, heads, kept = index.shape
    grouped = index.reshape(batch, states.shape[1], -1, 1).expand(-1, -1, -1, states.shape[-1])
    return states.gather(2, grouped).reshape(batch, heads, kept, -1)


def trimmed_cache(model: nn.Module) -> Any:
    """An empty cache for the model. Layers with a sliding window keep their own kind and are never compressed."""
    with extra("llm", "a compressed cache"):
        from transformers.cache_utils import Cache, DynamicSlidingWindowLayer

    layers = []
    for layer in range(len(layers_of(model))):
        window = sliding_window(model, layer)
        layers.append(_trimmed_layer()() if window is None else DynamicSlidingWindowLayer(sliding_window=window))
    return Cache(layers=layers)


def trimmed_copy(model: nn.Module, full: Any, index: Callable[[int], Tensor | None]) -> Any:
    """A new cache with the positions ``index(layer)`` of a full one; None keeps a layer whole. Tensors that are kept
    whole are shared: decoding appends to new ones."""
    made = trimmed_cache(model)
    for layer, (old, new) in enumerate(zip(full.layers, made.layers, strict=True)):
        new.__dict__.update(old.__dict__, told=False)
        if (wanted := index(layer)) is not None and compressible(new):
            new.gather(wanted)
    return made


def side_by_side(model: nn.Module, caches: Sequence[Any]) -> Any:
    """Caches of one length as a batch, so that decoding reads the weights once for all of them."""
    made = trimmed_cache(model)
    for new, *parts in zip(made.layers, *(cache.layers for cache in caches), strict=True):
        new.__dict__.update(parts[0].__dict__)
        new.keys, new.values = (torch.cat([getattr(part, side) for part in parts]) for side in ("keys", "values"))
    return made


def untouched_copy(model: nn.Module, cache: Any) -> Any:
    """A cache that can be decoded from while ``cache`` stays as it is."""
    return trimmed_copy(model, cache, lambda _: None)


def compressible(layer: Any) -> bool:
    """Whether a cache layer is one of ours."""
    return isinstance(layer, _trimmed_layer())


@dataclass(frozen=True)
class Attended:
    """A layer right after its attention ran: its place, its cache, and a way to its queries: projected once more, in a
    family that is known by name, or as the attention function had them. ``padding`` are the tokens that stand on the
    left of every prompt and mean nothing."""

    index: int
    attention: Any
    cache_layer: Any
    hidden: Tensor
    rotary: tuple[Tensor, Tensor] | None
    seen: Projected | None = None
    padding: Sequence[int] | None = None

    def blank(self, row: int) -> int:
        """How many entries at the left of a row's cache are padding: of every entry that was dropped one fewer, as
        attention masks have it, which are read from their end."""
        dropped = self.cache_layer.seen - self.cache_layer.stored
        return 0 if self.padding is None else max(0, self.padding[row] - dropped)

    @property
    def scaling(self) -> float:
        """What the attention multiplies logits with."""
        return float(self.attention.scaling) if self.seen is None else self.seen.scaling

    @property
    def softcap(self) -> float | None:
        """What the attention bounds logits by."""
        return None if self.seen is None else self.seen.softcap

    @property
    def sinks(self) -> Tensor | None:
        """Learned logits, (heads,), that take part in the softmax of every row."""
        return None if self.seen is None else self.seen.sinks

    @property
    def keys(self) -> Tensor:
        """What the cache holds: (batch, kv_heads, stored, width)."""
        keys: Tensor = self.cache_layer.keys
        return keys

    def queries(self, start: int, stop: int) -> Tensor:
        """Rotated queries of the tokens ``start..stop`` of this forward pass: (batch, heads, rows, width)."""
        if self.seen is not None:
            return self.seen.queries[:, :, start:stop]
        assert self.rotary is not None
        part = tuple(side[:, start:stop] for side in self.rotary)
        return project_queries(self.attention, self.hidden[:, start:stop], (part[0], part[1]))


@contextmanager
def after_attention(
    model: nn.Module, cache: Any, act: Callable[[Attended], None], padding: Sequence[int] | None = None
) -> Iterator[None]:
    """Call ``act`` after every layer's attention, while that layer's cache is complete and the next is not there.
    ``padding`` says how many tokens on the left of every prompt are none.

    A layer whose cache holds keys for every query head attends without repeating them, which it is told for the time
    of its own forward only."""
    attentions: list[Any] = attentions_of(model)
    by_name = all(known_family(attention) for attention in attentions)
    # Only a family that is known by name can be told to attend without repeating keys.
    groups = [attention.num_key_value_groups if by_name else 1 for attention in attentions]
    queries: dict[int, Projected] = {}

    def restore(index: int) -> None:
        if by_name:
            attentions[index].num_key_value_groups = groups[index]

    def before(index: int) -> Callable[..., None]:
        def tell(attention: Any, _: tuple[Any, ...]) -> None:
            if by_name and compressible(layer := cache.layers[index]):
                attention.num_key_value_groups = groups[index] // layer.repeats
                layer.told = True

        return tell

    def after(index: int) -> Callable[..., None]:
        def look(attention: Any, args: tuple[Any, ...], kwargs: dict[str, Any], _: Any) -> None:
            restore(index)
            seen = queries.pop(index, None)
            if compressible(cache.layers[index]):
                cache.layers[index].told = False
                hidden = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
                rotary = kwargs.get("position_embeddings")
                with torch.no_grad():
                    act(Attended(index, attention, cache.layers[index], hidden, rotary, seen, padding))

        return look

    def note(index: int, projected: Projected) -> None:
        queries[index] = projected

    handles = []
    try:
        for index, attention in enumerate(attentions):
            handles.append(attention.register_forward_pre_hook(before(index)))
            handles.append(attention.register_forward_hook(after(index), with_kwargs=True))
        with nullcontext() if by_name else attention_seen(model, note):
            yield
    finally:
        for handle in handles:
            handle.remove()
        for index in range(len(attentions)):
            restore(index)
