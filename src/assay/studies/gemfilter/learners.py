"""One prefill for everything: what filters, SnapKV and H2O keep of a prompt, and what the model answers from it.

Nothing is trained. A seed draws prompts, and for the exact arms the weights of a small random model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from assay.methods.gemfilter import H2O, FullAttention, GemFilter, OneRun, SnapKV, share_prefill
from assay.methods.gemfilter.adapter import Attended, side_by_side, trimmed_cache, untouched_copy
from assay.methods.gemfilter.baselines import filtered_positions
from assay.methods.gemfilter.compression import Compression, Prefilled

#: What a selection is called: a word, or a word and the layer, rule or row that it stands for.
Key = str | tuple[str, int | str]
#: How a layer's attention scores the tokens.
Rule = Literal["logits", "softmax", "window"]


class Row(NamedTuple):
    """What a learner reports: extra columns, and the metrics that belong to them. ``trials`` is set where these are
    shares of so many prompts, or of so many tokens."""

    columns: dict[str, Any]
    metrics: dict[str, float]
    trials: int | None = None


def report(record: Callable[..., None], per_seed: Sequence[Sequence[Row]]) -> None:
    """Rows that every seed has in the same order, recorded for all seeds at once."""
    for rows in zip(*per_seed, strict=True):
        columns, first, _ = rows[0]
        trials = [row.trials for row in rows if row.trials is not None]
        record(at=columns, trials=trials or None, **{name: [row.metrics[name] for row in rows] for name in first})


@dataclass(frozen=True)
class Anchored(GemFilter):
    """A filter whose chunks have the prompt's first tokens in front, as Star Attention's have. An ablation: it keeps no
    more of a fact (X7), and is no part of the method."""

    anchor: int = 0


def anchored(chosen: GemFilter, tokens: int) -> Anchored:
    """The same filter with an anchor of so many tokens."""
    return Anchored(**{one.name: getattr(chosen, one.name) for one in fields(GemFilter)}, anchor=tokens)


class Watch(Compression):
    """Drops nothing, and notes at every layer what filters and a cache compression would keep there."""

    name = "watch"

    def __init__(self, filters: Mapping[Key, GemFilter], compression: Compression) -> None:
        self.filters, self.compression = filters, compression
        self.kept: dict[Key, Tensor] = {}
        self.sets: list[Tensor] = []

    def positions(self, layer: Attended) -> None:
        for key, chosen in self.filters.items():
            if chosen.layer == layer.index:
                self.kept[key] = filtered_positions(chosen, layer)
        found = self.compression.positions(layer)
        assert found is not None, "nothing is compressed when the budget holds the whole prompt"
        self.sets.append(found)

    def index_sets(self) -> Tensor:
        """What the compression keeps, (batch, layers · kv_heads, keep)."""
        return torch.cat(self.sets, dim=1)


@dataclass(frozen=True)
class Read:
    """A batch of prompts after one prefill: positions kept by each filter, SnapKV's index sets, and the caches of full
    attention and of the methods that compress it, ready to decode."""

    kept: dict[Key, Tensor]
    index_sets: Tensor
    full: Prefilled
    compressed: list[Prefilled]


def budget_window(keep: int) -> int:
    """The recent tokens that SnapKV and H2O always keep: the text's 32, or half of a small budget."""
    return min(32, max(1, keep // 2))


@torch.no_grad()
def read(model: Any, ids: Tensor, filters: Mapping[Key, GemFilter], chosen: GemFilter) -> Read:
    """Full attention, SnapKV, H2O and one-run share one prefill; every filter's selection is noted on the way."""
    keep = chosen.budget(ids.shape[1])
    window = budget_window(keep)
    snapkv = SnapKV(keep, window=window)
    watch = Watch(filters, snapkv)
    methods = [FullAttention(), snapkv, H2O(keep, window=window), OneRun(chosen), watch]
    full, *compressed, _ = share_prefill(model, ids, methods)
    return Read(watch.kept, watch.index_sets(), full, compressed)


@torch.no_grad()
def answers(model: Any, seen: Read, kept: Mapping[Key, Tensor], new: int) -> dict[Key, Tensor]:
    """New tokens (batch, new) of full attention, of the compressed caches, and of a second run on each selection
    (batch, keep) of the same prompts. All caches of ``keep`` tokens are decoded as one batch, each from its own
    position: a second run's is ``keep``, a compressed cache's is that of the whole prompt."""
    ids = seen.full.input_ids
    short = torch.cat([ids.gather(1, places) for places in kept.values()])
    second = trimmed_cache(model)
    logits = model(short, past_key_values=second, use_cache=True, logits_to_keep=1).logits
    caches = [*(one.cache for one in seen.compressed), second]
    first = torch.cat([*(one.first for one in seen.compressed), logits[:, -1].argmax(dim=-1, keepdim=True)])
    position = torch.full_like(first, short.shape[1])
    position[: len(ids) * len(seen.compressed)] = ids.shape[1]
    made = greedy(model, side_by_side(model, caches), first, position, new)
    names = [*(one.method.name for one in seen.compressed), *kept]
    start = torch.full_like(seen.full.first, ids.shape[1])
    full = greedy(model, untouched_copy(model, seen.full.cache), seen.full.first, start, new)
    return {"full": full, **dict(zip(names, made.chunk(len(names)), strict=True))}


@torch.no_grad()
def second_runs(model: Any, ids: Tensor, kept: Mapping[Key, Tensor], new: int) -> dict[Key, Tensor]:
    """New tokens (batch, new) of a run on each selection (batch, keep) of the same prompts, all decoded together. Full
    attention is the run on all positions."""
    short = torch.cat([ids.gather(1, places) for places in kept.values()])
    cache = trimmed_cache(model)
    logits = model(short, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
    first = logits[:, -1].argmax(dim=-1, keepdim=True)
    made = greedy(model, cache, first, torch.full_like(first, short.shape[1]), new)
    return dict(zip(kept, made.chunk(len(kept)), strict=True))


@torch.no_grad()
def greedy(model: Any, cache: Any, first: Tensor, position: Tensor, new: int) -> Tensor:
    """Greedy decoding of rows whose caches have one length and whose first tokens (rows, 1) stand at ``position``
    (rows, 1): (rows, new). After its end a row repeats the token that ended it."""
    ends = model.generation_config.eos_token_id
    ends = torch.tensor([end for end in (ends if isinstance(ends, list) else [ends]) if end is not None]).to(first)
    made = [first]
    for step in range(new - 1):
        last = made[-1]
        if (ended := torch.isin(last, ends)).all():
            made.append(last)
            continue
        logits = model(last, past_key_values=cache, position_ids=position + step, use_cache=True).logits
        made.append(torch.where(ended, last, logits[:, -1].argmax(dim=-1, keepdim=True)))
    return torch.cat(made, dim=1)


def recall(kept: Tensor, wanted: Sequence[int]) -> Tensor:
    """The share of the wanted positions among the kept ones: (..., k) -> (...)."""
    places = torch.tensor(list(wanted), device=kept.device)
    return (kept[..., None] == places).any(dim=-2).float().mean(dim=-1)


def distance(kept: Tensor, wanted: Sequence[int]) -> Tensor:
    """How far the nearest kept token lies from the wanted ones, 0 when one of them is kept: (..., k) -> (...).

    The source writes the difference without its absolute value."""
    places = torch.tensor(list(wanted), device=kept.device)
    return (kept[..., None] - places).abs().flatten(-2).amin(dim=-1).float()


def random_positions(n: int, keep: int, draw: torch.Generator, last: int = 0) -> Tensor:
    """``keep`` positions at random, (1, keep) in rising order; the ``last`` ones of the prompt are always in."""
    chosen = torch.randperm(n - last, generator=draw)[: keep - last]
    return torch.cat([chosen, torch.arange(n - last, n)]).sort().values[None]


def blocks_touched(kept: Tensor, length: int, block: int = 16) -> Tensor:
    """The spread of a selection: the share of the prompt's blocks of ``block`` tokens that hold a kept one.

    ``kept`` (..., k) are positions -> (...)."""
    count = -(-length // block)
    touched = torch.zeros(*kept.shape[:-1], count, device=kept.device)
    return touched.scatter(-1, kept // block, 1.0).mean(dim=-1)
