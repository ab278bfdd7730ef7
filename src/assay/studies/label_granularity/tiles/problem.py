"""Hierarchical samples from real pixels: a grid of tiles, some of them images of a common or of a subclass kind.

The superclasses' common tiles are two classes of one image set, the subclass tiles classes of another (or the other
classes of the same set). A convolution reads tile by tile, so that only labels tell the network what belongs together.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from assay.data.images import load_images
from assay.training import Seeds

from ..images.problem import shrunk
from ..problem import COMMON, DISTRACTOR, SUBCLASS, HierarchicalPatches

SOURCES = {  # name: (set of the common tiles, its two classes, set of the subclass tiles, subclasses per superclass)
    "digits": ("digits", (8, 9), "digits", 4),
    "mnist+fashion_mnist": ("fashion_mnist", (1, 8), "mnist", 5),
}


@dataclass(frozen=True)
class Tiles:
    """Real tiles on a 4×6 grid, arranged as in ``HierarchicalPatches`` with exact counts; k* = 1.54."""

    source: str
    noise: float = 0.1
    limit: int = 20_000

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"tiles come from {' or '.join(SOURCES)}, not {self.source!r}")

    @property
    def subclasses(self) -> int:
        return SOURCES[self.source][3]

    @property
    def layout(self) -> HierarchicalPatches:
        """Where which kind of tile lies; the dictionary is of images, so that its dimension plays no part."""
        return HierarchicalPatches(
            subclasses=self.subclasses, distractors=6, faint=(0.6, 0.7), noise=0.0, strong_noise=0.0
        )

    def pools(self, split: str) -> list[Tensor]:
        """Flat tiles by feature: the two common ones, then every subclass."""
        common, pair, other, k = SOURCES[self.source]
        first, second = (load_images(name, split, limit=self.limit) for name in (common, other))
        tiles = [shrunk(shrunk_to(each.images)).flatten(1) for each in (first, second)]
        chosen = [tiles[0][first.labels == c] for c in pair]
        return chosen + [tiles[1][second.labels == c] for c in range(2 * k)]

    def sample(
        self, seeds: Seeds, name: str, per_subclass: int, pools: list[Tensor], *, hard: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Tiles (seeds, n, 24, pixels) and fine labels (n,)."""
        arranged = self.layout.sample(seeds, name, per_subclass, hard=hard)
        k, kinds = self.subclasses, arranged.kinds
        own = (2 + arranged.fine).view(1, -1, 1)
        common = arranged.superclass.view(1, -1, 1)
        feature = torch.where(kinds == SUBCLASS, own, torch.where(kinds == DISTRACTOR, 1 - common, common))
        picks = seeds.uniform(f"{name} tiles", *kinds.shape[1:])
        pixels = pools[0].shape[1]
        tiles = self.noise * seeds.normal(f"{name} pixels", *kinds.shape[1:], pixels)
        shown = (kinds == COMMON) | (kinds == SUBCLASS) | (kinds == DISTRACTOR)
        for i in range(2 + 2 * k):
            here = shown & (feature == i)
            pool = pools[i].to(tiles)
            index = (picks[here] * len(pool)).long().clamp(max=len(pool) - 1)
            tiles[here] += arranged.strengths[here].unsqueeze(-1) * pool[index]
        return tiles, arranged.fine


def shrunk_to(images: Tensor) -> Tensor:
    """Tiles of at most 8 pixels a side."""
    while max(images.shape[-2:]) > 8:
        images = functional.avg_pool2d(images, 2)
    return images
