"""What GemFilter is compared with: full attention, and three ways to shrink the cache after a full prefill.

All take what ``model.generate`` takes. ``share_prefill`` runs the prompt once for several of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from assay.methods._checks import all_finite, check_fields, limits
from assay.methods.gemfilter.adapter import Attended, Projected, compressible
from assay.methods.gemfilter.budget import budget_of, check_keep
from assay.methods.gemfilter.cautions import warn_too_long
from assay.methods.gemfilter.compression import Compression
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.prompts import Prompt, parts_of, prompt_of
from assay.methods.gemfilter.scoring import attention_rows, best_positions, pool


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
        warn_too_long(model, prompt)
        mask = torch.ones_like(prompt.input_ids) if prompt.mask is None else prompt.mask.long()
        return model.generate(input_ids=prompt.input_ids, attention_mask=mask, **kwargs)  # type: ignore[operator]


@dataclass(frozen=True)
class _Recent(Compression):
    """Keeps the last ``window`` entries and the best-scored of the others, ``keep`` in all; below 1 that is a share of
    the prompt."""

    keep: int | float = 1024
    window: int = field(default=32, metadata=limits(least=1))

    def __post_init__(self) -> None:
        check_fields(self)
        check_keep(self.keep)
        if 1 <= self.keep <= self.window:
            raise ValueError(f"keep = {self.keep} must exceed the window of {self.window} recent tokens")

    def budget(self, length: int) -> int:
        return self._room(length)

    def _room(self, length: int, padding: Sequence[int] | None = None) -> int:
        room = budget_of(self.keep, length, padding)
        if room <= self.window and room < length:
            share = f"keep = {self.keep} of {length} tokens is {room}"
            raise ValueError(f"{share}, which must exceed the window of {self.window} recent tokens")
        return room

    @abstractmethod
    def scores(self, layer: Attended) -> Tensor:
        """Scores of the entries before the window, (batch, kv_heads, n - window), -inf at padding: it stays only where
        a prompt shorter than the budget leaves room, and attention masks go on hiding it."""

    def positions(self, layer: Attended) -> Tensor | None:
        n = layer.hidden.shape[1]
        if n <= (room := self._room(n, layer.padding)):
            return None
        scores = self.scores(layer)
        _refuse_nan(scores)
        return self.best_and_recent(scores, room)

    def best_and_recent(self, scores: Tensor, keep: int) -> Tensor:
        """``keep`` entries: the last ``window`` and the best of those before, whose scores are given."""
        old = best_positions(scores, keep - self.window)
        n = scores.shape[-1] + self.window
        recent = torch.arange(n - self.window, n, device=old.device).expand(*old.shape[:-1], -1)
        return torch.cat([old, recent], dim=-1)


def _refuse_nan(scores: Tensor) -> None:
    """Padding has scores of -inf; NaN would be sorted among the best."""
    all_finite("the scores of tokens", scores[scores != float("-inf")])


def _received(layer: Attended, query: Tensor, keys: Tensor, per_query_head: bool = False) -> Tensor:
    """Attention that each key received from the rows of ``query`` (heads, rows, width): (kv_heads, n), the mean over
    each key's group, or (heads, n)."""
    summed = attention_rows(query, keys, layer.scaling, softcap=layer.softcap, sinks=layer.sinks).sum(dim=1)
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
        if self.per_query_head and layer.seen is not None:
            kind = type(layer.attention).__name__
            raise ValueError(f"index sets per query head need one of the families that are known by name, not {kind}")
        n = layer.hidden.shape[1]
        queries = layer.queries(n - self.window, n)
        found = []
        for row, (query, keys) in enumerate(zip(queries, layer.keys, strict=True)):
            blank = min(layer.blank(row), n - self.window)
            received = _received(layer, query, keys[:, blank:], self.per_query_head)[:, : n - self.window - blank]
            pooled = pool(received, "avg", self.kernel) if received.numel() else received
            found.append(pad(pooled, (blank, 0), value=float("-inf")))
        return torch.stack(found)


@dataclass(frozen=True)
class H2O(_Recent):
    """Each head keeps the entries with the most attention in total, over all queries, computed ``block`` rows at a time
    so that long prompts fit. ``decode_eviction`` goes on evicting while decoding, as H2O did when it was proposed; the
    comparisons in the text evict once."""

    name = "h2o"
    block: int = field(default=512, metadata=limits(least=1))
    decode_eviction: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decode_eviction and self.keep < 1:
            raise ValueError("decode_eviction holds the cache at one size: give keep as a number of tokens")

    def totals(self, layer: Attended) -> Tensor:
        """Attention that each entry received from all queries of the prompt: (batch, kv_heads, n), -inf at padding."""
        n = layer.hidden.shape[1]
        sums = torch.zeros(*layer.keys.shape[:3], device=layer.keys.device)
        for start in range(0, n, self.block):
            stop = min(start + self.block, n)
            queries = layer.queries(start, stop)
            for row, (query, keys) in enumerate(zip(queries, layer.keys, strict=True)):
                if stop > (blank := layer.blank(row)):
                    sums[row, :, blank:stop] += _received(layer, query[:, max(0, blank - start) :], keys[:, blank:stop])
        for row in range(len(sums)):
            sums[row, :, : layer.blank(row)] = float("-inf")
        return sums

    def scores(self, layer: Attended) -> Tensor:
        return self.totals(layer)[..., : layer.hidden.shape[1] - self.window]

    def positions(self, layer: Attended) -> Tensor | None:
        if not self.decode_eviction:
            return super().positions(layer)
        totals, n = self.totals(layer), layer.hidden.shape[1]
        _refuse_nan(totals)
        if n <= self.keep:
            layer.cache_layer.totals = totals
            return None
        kept = self.best_and_recent(totals[..., : n - self.window], int(self.keep))
        layer.cache_layer.totals = totals.gather(2, kept)
        return kept

    def step(self, layer: Attended) -> None:
        if not self.decode_eviction:
            return
        new = layer.hidden.shape[1]
        queries = layer.queries(0, new)
        rows = [
            pad(_received(layer, query, keys[:, (blank := layer.blank(row)) :]), (blank, 0))
            for row, (query, keys) in enumerate(zip(queries, layer.keys, strict=True))
        ]
        totals = pad(layer.cache_layer.totals, (0, new)) + torch.stack(rows)
        if totals.shape[-1] > self.keep:
            kept = self.best_and_recent(totals[..., : -self.window], int(self.keep))
            layer.cache_layer.gather(kept)
            totals = totals.gather(2, kept)
        layer.cache_layer.totals = totals


def filtered_positions(chosen: GemFilter, layer: Attended) -> Tensor:
    """What a filter keeps when it reads a layer in the middle of a full prefill: (batch, kept), in rising order. A
    prompt shorter than the budget has padding in front, as its attention mask has."""
    n = layer.hidden.shape[1]
    ids = torch.zeros(layer.hidden.shape[:2], dtype=torch.long, device=layer.hidden.device)
    prompt = Prompt(ids, _real(layer, ids))
    room = budget_of(chosen.keep, n, layer.padding)
    rows = 1 if chosen.rule != "window" else min(chosen.window, n)
    whole = chosen.row != "last"
    queries = layer.queries(0 if whole else n - rows, n)
    if whole and not chosen.searches_row:
        places = [real[chosen._position(len(real))] for real in map(prompt.real, range(prompt.batch))]
        queries = torch.stack([query[:, place : place + 1] for query, place in zip(queries, places, strict=True)])
    scores = chosen.scores_of(Projected(queries, layer.keys, layer.scaling, layer.softcap, layer.sinks), prompt)
    if prompt.mask is None:
        return chosen.best(scores)
    kept = []
    for row in range(prompt.batch):
        best = (real := prompt.real(row))[chosen.best(scores[row, real])]
        kept.append(torch.cat([torch.arange(room - len(best), device=best.device), best]))
    return torch.stack(kept)


def _real(layer: Attended, ids: Tensor) -> Tensor | None:
    """The mask of a padded batch."""
    if layer.padding is None:
        return None
    return torch.arange(ids.shape[1], device=ids.device) >= torch.tensor(layer.padding, device=ids.device)[:, None]


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
