"""Image sets as pretraining sources: real ones by name, and made-up ones that share no pattern with digits.

Every made-up set has ten classes, and its private features are another kind of pattern: stripes of an orientation and
a width, blobs at two of five places, codes of sixteen dark and bright tiles. Phase, place, contrast and noise vary
within a class. The sets are the same in every run, as files are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor
from torch.nn import functional

from assay.data.images import ImageSet, load_images
from assay.training import stream

CLASSES = 10
MADE_TEST = 500  # test images of a made-up set
_PLACES = ((-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5), (0.0, 0.0))


def _grid(side: int) -> tuple[Tensor, Tensor]:
    axis = (2 * torch.arange(side) + 1) / side - 1
    down, across = torch.meshgrid(axis, axis, indexing="ij")
    return down, across


def _stripes(labels: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Five orientations, each narrow and wide, at any phase."""
    down, across = _grid(side)
    angle = (labels % 5) * math.pi / 5
    waves = torch.where(labels < 5, 1.0, 2.0)
    phase = torch.rand(len(labels), generator=generator)
    along = across * angle.cos()[:, None, None] + down * angle.sin()[:, None, None]
    return (1 + torch.sin(2 * math.pi * (along * waves[:, None, None] / 1.4 + phase[:, None, None]))) / 2


def _blobs(labels: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Bright spots near two of five places, one pair of places for each class."""
    down, across = _grid(side)
    pairs = torch.tensor(list(combinations(_PLACES, 2)))[labels]  # (n, 2 spots, 2)
    centres = pairs + 0.15 * torch.randn(pairs.shape, generator=generator)
    far = (down - centres[..., 0, None, None]) ** 2 + (across - centres[..., 1, None, None]) ** 2
    return torch.exp(-far / 0.08).amax(1)


def _codes(labels: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Four by four tiles, dark or bright by the class's code, of which one in ten is turned over."""
    book = torch.rand(CLASSES, 16, generator=stream(0, "code book")) < 0.5
    turned = torch.rand(len(labels), 16, generator=generator) < 0.1
    tiles = (book[labels] ^ turned).float().view(-1, 1, 4, 4)
    return functional.interpolate(tiles, size=(side, side), mode="area" if side < 4 else "nearest")[:, 0]


MADE: dict[str, Callable[[Tensor, int, torch.Generator], Tensor]] = {
    "stripes": _stripes,
    "blobs": _blobs,
    "codes": _codes,
}


def _made(name: str, split: str, count: int, side: int) -> ImageSet:
    generator = stream(0, f"{name}, {split}")
    labels = torch.arange(count) % CLASSES
    patterns = MADE[name](labels, side, generator)
    contrast = 0.5 + 0.5 * torch.rand(count, 1, 1, generator=generator)
    noise = 0.1 * torch.randn(count, side, side, generator=generator)
    return ImageSet((contrast * patterns + noise).clamp(0, 1).unsqueeze(1), labels, name, CLASSES)


def load_source(name: str, split: str, *, side: int, limit: int) -> ImageSet:
    """At most ``limit`` images of a set, grey, ``side`` pixels wide and high."""
    if name in MADE:
        return _made(name, split, limit if split == "train" else min(limit, MADE_TEST), side)
    found = load_images(name, split, limit=limit)
    grey = found.images.mean(1, keepdim=True)
    size = (side, side)
    if grey.shape[-1] > side:
        grey = functional.interpolate(grey, size=size, mode="area")
    elif grey.shape[-1] < side:
        grey = functional.interpolate(grey, size=size, mode="bilinear", align_corners=False)
    return replace(found, images=grey)


def mixtures(sources: tuple[str, ...]) -> tuple[str, ...]:
    """The target's set alone, then one more at a time: "a", "a+b", "a+b+c"."""
    return tuple("+".join(sources[: k + 1]) for k in range(len(sources)))
