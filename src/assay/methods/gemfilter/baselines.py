"""What GemFilter is compared with: full attention, and three ways to shrink the cache after a full prefill.

All take what ``model.generate`` takes. ``share_prefill`` runs the prompt once for several of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods._checks import check_fields, limits
from assay.methods.gemfilter.adapter import (
    Attended,
    Projected,
    after_attention,
    check_usable,
    compressible,
    trimmed_cache,
    trimmed_copy,
    untouched_copy,
)
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.prompts import Prompt, parts_of, prompt_of, tokens_alone
from assay.methods.gemfilter.scoring import attention_rows, best_positions, pool


class Compression(ABC):
    """A rule for which entries of each layer's cache stay after the prefill; decoded tokens are appended."""

    name = "compression"

    def budget(self, length: int) -> int:
        """How many entries of each layer's cache stay after a prompt of ``length`` tokens."""
        return length

    @abstractmethod
    def positions(self, layer: Attended) -> Tensor | None:
        """The entries of a layer that stay, (batch, heads, kept) in rising order; None keeps all. ``heads`` are the
        key-value heads, or the query heads where each is to have keys and values of its own."""

    def finish(self, cache: Any) -> None:
        """Called when the prefill is over and every layer's cache is there."""
        return

    def step(self, layer: Attended) -> None:
        """Called after every layer's attention while decoding."""
        return

    def generate(self, model: nn.Module, inputs: Any = None, **kwargs: Any) -> Any:
        """Prefill, compress layer by layer as it goes, decode. Takes and returns what ``model.generate`` does."""
        given, kwargs = parts_of(inputs, kwargs)
        prompt = _unpadded(model, **given)
        _check_decoding(model, kwargs)
        kwargs = tokens_alone(kwargs)
        cache, ids = trimmed_cache(model), prompt.input_ids
        if not any(compressible(layer) for layer in cache.layers):
            raise ValueError("every layer of this model has a sliding window: there is no cache to compress")
        with after_attention(model, cache, _Compressing(self, cache)):
            # Without a mask generate would guess one from the tokens.
            return model.generate(ids, attention_mask=torch.ones_like(ids), past_key_values=cache, **kwargs)  # type: ignore[operator]


class _Compressing:
    """Tells the prefill of a layer from its decoding steps."""

    def __init__(self, method: Compression, cache: Any) -> None:
        self.method, self.cache = method, cache
        self.last = max((i for i, layer in enumerate(cache.layers) if compressible(layer)), default=-1)

    def __call__(self, layer: Attended) -> None:
        if layer.cache_layer.seen != layer.hidden.shape[1]:
            self.method.step(layer)
            return
        if (kept := self.method.positions(layer)) is not None:
            layer.cache_layer.gather(kept)
        if layer.index == self.last:
            self.method.finish(self.cache)


def _unpadded(model: nn.Module, inputs: Any = None, **given: Any) -> Prompt:
    check_usable(model)
    prompt = prompt_of(model, inputs, **given)
    if prompt.mask is not None:
        raise ValueError("a compressed cache needs prompts without padding: pass prompts of one length, or one by one")
    return prompt


def _check_decoding(model: Any, kwargs: dict[str, Any]) -> None:
    config = kwargs.get("generation_config") or model.generation_config

    def asked(name: str, otherwise: Any = None) -> Any:
        """In the call, else in the configuration that holds for it."""
        value = kwargs[name] if kwargs.get(name) is not None else getattr(config, name, None)
        return otherwise if value is None else value

    scaling = getattr(model.config, "rope_parameters", None) or getattr(model.config, "rope_scaling", None) or {}
    kinds = {scaling.get("rope_type"), scaling.get("type")} if isinstance(scaling, dict) else set()
    others = ("past_key_values", "assistant_model", "prompt_lookup_num_tokens", "prefill_chunk_size", "inputs_embeds")
    for wrong, why in (
        (asked("num_beams", 1) > 1, "does not go with beam search: use num_beams=1"),
        (asked("cache_implementation", "dynamic") != "dynamic", "has a cache_implementation of its own: ask for none"),
        *((asked(name) is not None, f"does not go with {name}") for name in others),
        (asked("use_cache", True) is False, "needs use_cache=True"),
        ("longrope" in kinds, "needs one rotation, and this model changes its own with the length (long RoPE)"),
    ):
        if wrong:
            raise ValueError(f"a compressed cache {why}")


@dataclass(frozen=True)
class FullAttention(Compression):
    """Nothing is dropped."""

    name = "full"

    def positions(self, layer: Attended) -> None:
        return None

    def generate(self, model: nn.Module, inputs: Any = None, **kwargs: Any) -> Any:
        """The model's own generation, whatever the model, its cache and its decoding."""
        given, kwargs = parts_of(inputs, kwargs)
        prompt = prompt_of(model, **given)
        mask = torch.ones_like(prompt.input_ids) if prompt.mask is None else prompt.mask.long()
        return model.generate(input_ids=prompt.input_ids, attention_mask=mask, **kwargs)  # type: ignore[operator]


@dataclass(frozen=True)
class _Recent(Compression):
    """Keeps the last ``window`` entries and the best-scored of the others, ``keep`` in all."""

    keep: int = field(default=1024, metadata=limits(least=1))
    window: int = field(default=32, metadata=limits(least=1))

    def __post_init__(self) -> None:
        check_fields(self)
        if self.keep <= self.window:
            raise ValueError(f"keep = {self.keep} must exceed the window of {self.window} recent tokens")

    def budget(self, length: int) -> int:
        return min(self.keep, length)

    @abstractmethod
    def scores(self, layer: Attended) -> Tensor:
        """Scores of the entries before the window: (batch, kv_heads, n - window)."""

    def positions(self, layer: Attended) -> Tensor | None:
        n = layer.hidden.shape[1]
        if n <= self.keep:
            return None
        return self.best_and_recent(self.scores(layer), self.keep)

    def best_and_recent(self, scores: Tensor, keep: int) -> Tensor:
        """``keep`` entries: the last ``window`` and the best of those before, whose scores are given."""
        old = best_positions(scores, keep - self.window)
        n = scores.shape[-1] + self.window
        recent = torch.arange(n - self.window, n, device=old.device).expand(*old.shape[:-1], -1)
        return torch.cat([old, recent], dim=-1)


def _received(layer: Attended, query: Tensor, keys: Tensor, per_query_head: bool = False) -> Tensor:
    """Attention that each key received from the rows of ``query`` (heads, rows, width): (kv_heads, n), the mean over
    each key's group, or (heads, n)."""
    summed = attention_rows(query, keys, layer.scaling).sum(dim=1)
    return summed if per_query_head else summed.reshape(keys.shape[0], -1, summed.shape[-1]).mean(dim=1)


@dataclass(frozen=True)
class SnapKV(_Recent):
    """Each head keeps what the last ``window`` queries attend to. Index sets are per key-value head, so that grouped
    caches stay grouped. ``per_query_head`` has one per query head, as the authors' code does: keys and values that a
    group shared are then stored for each of its heads, and the cache is larger by the size of a group."""

    name = "snapkv"
    kernel: int = field(default=5, metadata=limits(least=1))
    per_query_head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, not {self.kernel}")

    def scores(self, layer: Attended) -> Tensor:
        n = layer.hidden.shape[1]
        queries = layer.queries(n - self.window, n)
        found = []
        for query, keys in zip(queries, layer.keys, strict=True):
            received = _received(layer, query, keys, self.per_query_head)
            found.append(pool(received[:, : n - self.window], "avg", self.kernel))
        return torch.stack(found)


@dataclass(frozen=True)
class H2O(_Recent):
    """Each head keeps the entries with the most attention in total, over all queries, computed ``block`` rows at a time
    so that long prompts fit. ``decode_eviction`` goes on evicting while decoding, as H2O did when it was proposed; the
    comparisons in the text evict once."""

    name = "h2o"
    block: int = field(default=512, metadata=limits(least=1))
    decode_eviction: bool = False

    def totals(self, layer: Attended) -> Tensor:
        """Attention that each entry received from all queries of the prompt: (batch, kv_heads, n)."""
        n = layer.hidden.shape[1]
        sums = torch.zeros(*layer.keys.shape[:3], device=layer.keys.device)
        for start in range(0, n, self.block):
            stop = min(start + self.block, n)
            queries = layer.queries(start, stop)
            for row, (query, keys) in enumerate(zip(queries, layer.keys, strict=True)):
                sums[row, :, :stop] += _received(layer, query, keys[:, :stop])
        return sums

    def scores(self, layer: Attended) -> Tensor:
        return self.totals(layer)[..., : layer.hidden.shape[1] - self.window]

    def positions(self, layer: Attended) -> Tensor | None:
        if not self.decode_eviction:
            return super().positions(layer)
        totals, n = self.totals(layer), layer.hidden.shape[1]
        if n <= self.keep:
            layer.cache_layer.totals = totals
            return None
        kept = self.best_and_recent(totals[..., : n - self.window], self.keep)
        layer.cache_layer.totals = totals.gather(2, kept)
        return kept

    def step(self, layer: Attended) -> None:
        if not self.decode_eviction:
            return
        new = layer.hidden.shape[1]
        queries = layer.queries(0, new)
        rows = [_received(layer, query, keys) for query, keys in zip(queries, layer.keys, strict=True)]
        totals = torch.nn.functional.pad(layer.cache_layer.totals, (0, new)) + torch.stack(rows)
        if totals.shape[-1] > self.keep:
            kept = self.best_and_recent(totals[..., : -self.window], self.keep)
            layer.cache_layer.gather(kept)
            totals = totals.gather(2, kept)
        layer.cache_layer.totals = totals


def filtered_positions(chosen: GemFilter, layer: Attended) -> Tensor:
    """What a filter keeps when it reads a layer in the middle of a full prefill: (batch, kept), in rising order."""
    n = layer.hidden.shape[1]
    prompt = Prompt(torch.zeros(layer.hidden.shape[:2], dtype=torch.long, device=layer.hidden.device))
    rows = 1 if chosen.rule != "window" else min(chosen.window, n)
    whole = chosen.row != "last"
    queries = layer.queries(0 if whole else n - rows, n)
    if whole and not chosen.searches_row:
        place = chosen._position(n)
        queries = queries[:, :, place : place + 1]
    scores = chosen.scores_of(Projected(queries, layer.keys, layer.scaling), prompt)
    return best_positions(scores, chosen.keep, keep_first=chosen.keep_first, keep_last=chosen.keep_last)


@dataclass(frozen=True)
class OneRun(Compression):
    """GemFilter's selection without its second run: a full prefill, then every layer keeps the entries that the filter
    chose, at their old positions."""

    filter: GemFilter
    name = "one-run"
    _chosen: dict[str, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.filter.layer == "auto":
            raise ValueError("one-run needs a filter with a layer: call resolved(model, tokenizer) on it first")
        if self.filter.chunk is not None:
            raise ValueError("one-run reads the prompt whole: its filter must have chunk=None")

    def budget(self, length: int) -> int:
        return self.filter.budget(length)

    def positions(self, layer: Attended) -> None:
        """Nothing is dropped before the prefill is over: the layers below the filter ran first."""
        if layer.index == self.filter.layer:
            self._chosen["index"] = filtered_positions(self.filter, layer)

    def finish(self, cache: Any) -> None:
        if "index" not in self._chosen:
            layers, number = len(cache.layers), self.filter.layer
            known = isinstance(number, int) and number < layers
            why = "has a sliding window and sees no far tokens" if known else f"is not among its {layers} layers"
            raise ValueError(f"the model's layer {number} cannot filter: it {why}")
        index = self._chosen.pop("index")
        for layer in cache.layers:
            if compressible(layer) and layer.stored > index.shape[-1]:
                layer.gather(index[:, None].expand(-1, layer.keys.shape[1], -1))


@dataclass(frozen=True)
class Prefilled:
    """A prompt that was run once, with one method's cache, ready to decode."""

    method: Compression
    cache: Any
    input_ids: Tensor
    first: Tensor

    def generate(self, model: Any, *, max_new_tokens: int, do_sample: bool = False, **kwargs: Any) -> Tensor:
        """Greedy decoding, as often as you like: the prompt and the new tokens behind it."""
        if do_sample:
            raise ValueError("a shared prefill is decoded greedily: its first token is already chosen")
        ids = torch.cat([self.input_ids, self.first], dim=1)
        ends = model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        ended = sum((self.first == end for end in ends if end is not None), torch.zeros_like(self.first)).bool()
        if bool(ended.any()) and len(ids) > 1:
            raise ValueError("a prompt of the batch ends at once: share prefills of one prompt at a time")
        if max_new_tokens == 1 or bool(ended.any()):
            return ids
        cache = untouched_copy(model, self.cache)
        with after_attention(model, cache, self.method.step):
            made: Tensor = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                past_key_values=cache,
                max_new_tokens=max_new_tokens - 1,
                do_sample=False,
                **kwargs,
            )
        return made


@torch.no_grad()
def share_prefill(model: Any, inputs: Any, methods: Sequence[Compression]) -> list[Prefilled]:
    """Run the prompt once and give each method a cache of its own. Needs the memory of the full cache and of every
    compressed one; a method that runs alone compresses layer by layer instead."""
    prompt = _unpadded(model, inputs)
    _check_decoding(model, {})
    full = trimmed_cache(model)
    kept: dict[tuple[int, int], Tensor] = {}
    totals: dict[tuple[int, int], Tensor] = {}

    def look(layer: Attended) -> None:
        for which, method in enumerate(methods):
            if (index := method.positions(layer)) is not None:
                kept[which, layer.index] = index
            if isinstance(method, H2O) and method.decode_eviction:
                totals[which, layer.index] = layer.cache_layer.__dict__.pop("totals")

    with after_attention(model, full, look):
        logits = model(prompt.input_ids, past_key_values=full, use_cache=True, logits_to_keep=1).logits
    first = logits[:, -1].argmax(dim=-1, keepdim=True)
    made = []
    for which, method in enumerate(methods):
        cache = trimmed_copy(model, full, lambda layer, which=which: kept.get((which, layer)))  # type: ignore[misc]
        for layer, cache_layer in enumerate(cache.layers):
            if (which, layer) in totals:
                cache_layer.totals = totals[which, layer]
        method.finish(cache)
        made.append(Prefilled(method, cache, prompt.input_ids, first))
    return made
