"""Several documents between one head and one tail, each cut into chunks by itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from assay.methods.gemfilter.chunks import Layout


class Shelf:
    """What ``Joined`` asks of a layout, for documents that stand side by side: head, one document after the other,
    tail. A chunk holds the head, a piece of one document, and the tail."""

    def __init__(
        self, lengths: Sequence[int], chunk: int, *, overlap: int, head: int = 0, tail: int = 0, sink: int = 0
    ) -> None:
        self.lengths, self.head, self.tail = tuple(lengths), head, tail
        self.layouts = [
            Layout.of(head + n + tail, chunk, overlap=overlap, tail=tail, anchor=head, sink=sink) for n in lengths
        ]
        self.numbers = [
            (document, number) for document, layout in enumerate(self.layouts) for number in range(layout.chunks)
        ]

    @cached_property
    def begins(self) -> list[int]:
        """Where each document begins."""
        return [self.head + before for before in accumulate(self.lengths, initial=0)][:-1]

    @property
    def length(self) -> int:
        return self.head + sum(self.lengths) + self.tail

    @property
    def chunks(self) -> int:
        return len(self.numbers)

    def positions(self, number: int) -> Tensor:
        """Where a chunk's tokens stand on the shelf."""
        document, inner = self.numbers[number]
        local = self.layouts[document].positions(inner)
        body = local - self.head + self.begins[document]
        behind = local - (self.head + self.lengths[document]) + self.length - self.tail
        placed = torch.where(local < self.head, local, body)
        return torch.where(local < self.head + self.lengths[document], placed, behind)

    def scored(self, number: int) -> Tensor:
        """Which tokens of a chunk it scores."""
        document, inner = self.numbers[number]
        return self.layouts[document].scored(inner)

    def of(self, scores: Tensor, document: int) -> Tensor:
        """One document's part of scores on the shelf."""
        return scores[self.begins[document] : self.begins[document] + self.lengths[document]]


def pieces(ids: Sequence[int], chunk: int, overlap: int) -> list[list[int]]:
    """The chunks of one document, without head and tail."""
    layout = Layout.of(len(ids), chunk, overlap=overlap, tail=0)
    return [list(ids[start : start + layout.size]) for start in layout.starts]
