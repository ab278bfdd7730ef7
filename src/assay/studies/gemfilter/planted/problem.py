"""A needle task at token level: facts hidden among filler, one of them asked for, and the places it stands at known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import stream

BOS, MARK = 0, 1
_BLOCK = 6
TASKS = {"one-hop": 1, "two-hop": 2}


@dataclass(frozen=True)
class Planted:
    """Prompts of one length as ids (prompts, n), with the positions that the answer needs, the positions of the value's
    two tokens, (prompts, 2), the value itself, (prompts, 2), and the depth of its place."""

    ids: Tensor
    needle_at: list[list[int]]
    answer_at: Tensor
    answer: Tensor
    depth: Tensor

    def __len__(self) -> int:
        return self.ids.shape[0]


@dataclass(frozen=True)
class PlantedNeedle:
    """bos, filler with ``pairs`` facts among it, the query mark, and a key.

    One-hop facts are ``key v1 v2`` in one place. Two-hop facts are ``key bridge`` in one place and ``bridge v1 v2`` in
    another. Keys, bridges and values are all distinct, so that every other fact is a distractor from the same sets.
    The value's place is at the asked depth, all others are drawn; ``apart`` says how many places before or behind the
    value's that of its bridge lies. With ``absent`` the facts about the asked key are missing.
    """

    length: int
    hops: int = 1
    pairs: int = 4
    entities: int = 16
    values: int = 16
    fillers: int = 8
    absent: bool = False
    apart: int | None = None

    def __post_init__(self) -> None:
        if self.hops not in (1, 2):
            raise ValueError(f"a fact takes one hop or two, not {self.hops}")
        if self.pairs < 1 or self.hops * self.pairs > self.entities or 2 * self.pairs > self.values:
            raise ValueError(f"{self.pairs} facts of {self.hops} hops need more keys or values than there are")
        if self.blocks < 2 * self.hops * self.pairs:
            raise ValueError(f"a prompt of {self.length} tokens has no room for {self.pairs} facts")
        if self.apart is not None and (self.hops != 2 or not 1 <= self.apart <= self.blocks // 2):
            raise ValueError(f"facts of two hops lie 1 to {self.blocks // 2} places apart here, not {self.apart}")

    @property
    def vocabulary(self) -> int:
        return 2 + self.entities + self.values + self.fillers

    @property
    def blocks(self) -> int:
        """Places for facts: runs of six tokens between bos and the question."""
        return (self.length - 3) // _BLOCK

    def sample(self, seed: int, depths: tuple[float, ...], count: int) -> Planted:
        """``count`` prompts for every depth, a function of the seed alone."""
        made = [self._prompt(stream(seed, f"planted {depth} {i}"), depth) for depth in depths for i in range(count)]
        ids, needles, answers, values = zip(*made, strict=True)
        depth = torch.tensor([depth for depth in depths for _ in range(count)])
        return Planted(torch.stack(ids), list(needles), torch.tensor(answers), torch.stack(values), depth)

    def _prompt(self, draw: torch.Generator, depth: float) -> tuple[Tensor, list[int], list[int], Tensor]:
        filler = 2 + self.entities + self.values
        ids = torch.randint(filler, self.vocabulary, (self.length,), generator=draw)
        names = 2 + torch.randperm(self.entities, generator=draw)[: self.hops * self.pairs].reshape(self.pairs, -1)
        values = 2 + self.entities + torch.randperm(self.values, generator=draw)[: 2 * self.pairs].reshape(-1, 2)
        first = min(int(depth * self.blocks), self.blocks - 1)
        rest = torch.randperm(self.blocks - 1, generator=draw)[: self.hops * self.pairs - 1]
        places = [first, *(rest + (rest >= first)).tolist()]
        if self.apart is not None:
            bridge = first + (self.apart if first + self.apart < self.blocks else -self.apart)
            others = [place for place in places[1:] if place != bridge]
            places = [first, bridge, *others][: len(places)]
        needle: list[int] = []
        for fact in range(self.pairs):
            chain = [*names[fact].tolist()]
            runs = [[chain[-1], *values[fact].tolist()], *([chain] if self.hops == 2 else [])]
            for run in runs:
                at = 1 + _BLOCK * places.pop(0)
                if fact == 0 and self.absent:
                    continue
                ids[at : at + len(run)] = torch.tensor(run)
                if fact == 0:
                    needle += range(at, at + len(run))
        ids[0], ids[-2], ids[-1] = BOS, MARK, names[0, 0]
        value_at = 2 + _BLOCK * first
        return ids, needle, [value_at, value_at + 1], values[0]
