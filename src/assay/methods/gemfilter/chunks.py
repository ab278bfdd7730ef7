"""A long prompt as overlapping chunks, each with the prompt's tail behind it, and their scores joined again.

The keys of a passage need only its neighbourhood, and the rows of a question at the end need only the passage: so the
filter layer can look at one piece of the text at a time. Positions begin anew in every chunk, which costs time linear
in the prompt, and no position lies beyond what the model was trained for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from assay.methods.gemfilter.adapter import Projected, read_layers, sequence_bytes
from assay.methods.gemfilter.prompts import Prompt
from assay.methods.gemfilter.scoring import causal_logits, logit_scores

#: What ``chunk="auto"`` takes for a chunk where the context is long enough.
AUTO_CHUNK = 1024


def shared_tokens(chunk: int, overlap: int | None = None, *, auto: bool = False) -> int:
    """Tokens that neighbours share: ``overlap``, by default an eighth of a chunk and 256 at most, since all of them are
    read twice. Of an ``auto`` chunk that a short context makes small, half at most: an overlap that was meant for a
    longer one would leave no step."""
    if overlap is None:
        return min(chunk // 8, 256)
    return min(overlap, chunk // 2 if auto and chunk < AUTO_CHUNK else chunk - 1)


@dataclass(frozen=True)
class Layout:
    """How a prompt of ``length`` tokens is cut: the anchor, ``size`` tokens of the body from each of ``starts``, and
    the tail make a chunk. The body is what lies between anchor and tail. All chunks are equally long."""

    length: int
    starts: tuple[int, ...]
    size: int
    tail: int
    anchor: int = 0
    sink: int = 0

    @classmethod
    def of(cls, length: int, chunk: int, *, overlap: int, tail: int, anchor: int = 0, sink: int = 0) -> Layout:
        """Chunks of ``chunk`` tokens of the body, each of which shares ``overlap`` with the one before; the last ends
        with the body and may share more. A text that grows keeps all chunks but the last where they were. A body that
        fits into one chunk is one."""
        tail = min(tail, length)
        anchor = min(anchor, length - tail)
        body = length - tail - anchor
        if body <= chunk:
            return cls(length, (anchor,), body, tail, anchor, sink)
        last = anchor + body - chunk
        return cls(length, (*range(anchor, last, chunk - overlap), last), chunk, tail, anchor, sink)

    @property
    def chunks(self) -> int:
        return len(self.starts)

    @property
    def chunk_length(self) -> int:
        """Tokens of every chunk, with anchor and tail."""
        return self.anchor + self.size + self.tail

    def positions(self, number: int) -> Tensor:
        """The prompt's positions that a chunk holds, in its order."""
        return self._places[number]

    @cached_property
    def _places(self) -> list[Tensor]:
        around = torch.arange(self.anchor), torch.arange(self.length - self.tail, self.length)
        body = torch.arange(self.size)
        return [torch.cat([around[0], start + body, around[1]]) for start in self.starts]

    def scored(self, number: int) -> Tensor:
        """Which tokens of a chunk it scores: its first ones draw attention whatever they say, and are left to the
        chunk that has them further in, where there is one."""
        place = torch.arange(self.chunk_length)
        return (place >= self.sink) | (self._covered[self.positions(number)] == 0)

    @cached_property
    def _covered(self) -> Tensor:
        """In how many chunks each token lies behind the first ones."""
        counts = torch.zeros(self.length, dtype=torch.long)
        for number in range(self.chunks):
            counts[self.positions(number)[self.sink :]] += 1
        return counts


class Cut(Protocol):
    """What joining needs of a layout: tokens in all, and of every chunk the places and which of them it scores."""

    @property
    def length(self) -> int: ...
    def positions(self, number: int) -> Tensor: ...
    def scored(self, number: int) -> Tensor: ...


class Joined:
    """Scores of one prompt's tokens under a rule, collected chunk by chunk in any order.

    Raw logits are comparable as they are. Attention is one softmax over the keys of all chunks, for every row and head:
    each chunk's own attention is kept with its normaliser until all are there. A model's learned sinks take part in it
    once. A token that several chunks score takes its best score.
    """

    def __init__(self, rule: str, layout: Cut) -> None:
        self.rule, self.layout = rule, layout
        self.chunks: dict[int, tuple[Tensor, Tensor]] = {}
        self.sinks: Tensor | None = None

    def add(self, number: int, projected: Projected) -> None:
        """A chunk's last queries (heads, rows, width) and its keys (kv_heads, n, width)."""
        queries, keys = projected.queries, projected.keys
        if self.rule == "logits":
            scores = logit_scores(queries[:, -1], keys)
            self.chunks[number] = scores, scores.new_zeros(())
            return
        rows = queries[:, -1:] if self.rule == "softmax" else queries
        logits = causal_logits(rows, keys, projected.scaling, softcap=projected.softcap)
        self.sinks = projected.sinks
        size = logits.logsumexp(dim=-1)
        attention = (logits - size[..., None]).exp()
        # A window's attention is heads × rows numbers a token: half of the memory where that is scarce.
        self.chunks[number] = (attention if attention.device.type == "cpu" else attention.half()), size

    def scores(self) -> Tensor:
        """The score of every token of the prompt, (n,)."""
        device = self.chunks[0][0].device
        best = torch.full((self.layout.length,), float("-inf"), device=device)
        total = torch.stack([size for _, size in self.chunks.values()]).logsumexp(dim=0)
        if self.sinks is not None:
            total = torch.logaddexp(total, self.sinks[:, None])
        in_order = sorted(self.chunks.items())
        found = torch.cat([self._score(*chunk, total) for _, chunk in in_order])
        # Places are told to the device once and not chunk by chunk, each of which it would be waited for.
        scored = torch.cat([self.layout.scored(number) for number, _ in in_order]).nonzero()[:, 0]
        places = torch.cat([self.layout.positions(number) for number, _ in in_order])[scored]
        return best.scatter_reduce_(0, places.to(device), found[scored.to(device)], "amax")

    def _score(self, found: Tensor, size: Tensor, total: Tensor) -> Tensor:
        """One chunk's part of the scores, (n,)."""
        if self.rule == "logits":
            return found
        return torch.einsum("hrn,hr->n", found.float(), (size - total).exp() / size.shape[-1])


Take = Callable[[int, int, int, Projected], None]


def read_chunks(
    model: nn.Module,
    prompt: Prompt,
    layouts: Sequence[Layout],
    layers: Sequence[int],
    rows: int,
    take: Take,
    *,
    memory: float,
    **options: Any,
) -> None:
    """Run every chunk of every prompt up to the last of ``layers``, as many at a time as ``memory`` GiB of activations
    allow, and hand ``take`` the layer, the row, the chunk's number, and its keys with its last ``rows`` queries."""
    for batch in _batches(model, layouts, memory):
        wanted = [prompt.real(row)[layouts[row].positions(number).to(prompt.input_ids.device)] for row, number in batch]
        ids = torch.stack([prompt.input_ids[row, places] for (row, _), places in zip(batch, wanted, strict=True)])
        last = torch.arange(max(0, ids.shape[1] - rows), ids.shape[1], device=ids.device).expand(len(batch), -1)

        def hand_on(layer: int, projected: Projected, batch: list[tuple[int, int]] = batch) -> None:
            for place, (row, number) in enumerate(batch):
                take(layer, row, number, projected.of(place))

        read_layers(model, ids, None, layers, last, hand_on, **options)


def _batches(model: nn.Module, layouts: Sequence[Layout], memory: float) -> Iterator[list[tuple[int, int]]]:
    """(row, chunk) pairs of one length, several at a time."""
    pairs = [(row, number) for row, layout in enumerate(layouts) for number in range(layout.chunks)]
    pairs.sort(key=lambda pair: layouts[pair[0]].chunk_length)
    for length, group in groupby(pairs, key=lambda pair: layouts[pair[0]].chunk_length):
        same = list(group)
        count = max(1, int(memory * 2**30 // sequence_bytes(model, length)))
        yield from (same[start : start + count] for start in range(0, len(same), count))
