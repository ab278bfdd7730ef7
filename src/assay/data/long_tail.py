"""Long-tailed versions of image sets: class counts that decay exponentially from the largest class to the smallest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from .images import ImageSet


def long_tailed_counts(classes: int, largest: int, ratio: float) -> list[int]:
    """n_c = n_max ρ^{−c/(C − 1)}, c = 0, …, C − 1, rounded down; ρ is the largest class over the smallest."""
    if classes < 2 or largest < 1:
        raise ValueError(f"a long tail needs two classes and an image or more, not {classes} and {largest}")
    if ratio < 1:
        raise ValueError(f"the ratio ρ of the largest class to the smallest is at least 1, not {ratio}")
    # A hair above the exact power: 5000/100 must not be rounded down to 49 for an error in the last bit.
    counts = [int(largest * ratio ** (-c / (classes - 1)) + 1e-9) for c in range(classes)]
    if counts[-1] < 1:
        raise ValueError(f"with ρ = {ratio:g} and {largest} images in the largest class the smallest has none")
    return counts


def long_tailed(
    images: ImageSet,
    ratio: float,
    *,
    largest: int | None = None,
    order: Sequence[int] | None = None,
    generator: torch.Generator,
) -> ImageSet:
    """A subset with the exponential profile; ``order[0]`` is the class that becomes the most frequent (default: class
    0), and the images of each class are drawn without replacement. ``largest`` defaults to what the set allows."""
    ranked = list(order) if order is not None else list(range(images.classes))
    if sorted(ranked) != list(range(images.classes)):
        raise ValueError(f"order must name each of the {images.classes} classes once")
    have = torch.bincount(images.labels, minlength=images.classes)
    most = _largest(have[ranked].tolist(), ratio) if largest is None else largest
    counts = long_tailed_counts(images.classes, most, ratio)
    for c, count in zip(ranked, counts, strict=True):
        if count > have[c]:
            raise ValueError(f"class {c} of {images.name} has {int(have[c])} images, and {count} are wanted")
    kept = [_some(images, c, count, generator) for c, count in zip(ranked, counts, strict=True)]
    index = torch.cat(kept).sort().values
    return replace(images, images=images.images[index], labels=images.labels[index])


def balanced(images: ImageSet, per_class: int, *, generator: torch.Generator) -> ImageSet:
    """The same number of images of every class, as many as there are at most."""
    have = int(torch.bincount(images.labels, minlength=images.classes).min())
    kept = [_some(images, c, min(per_class, have), generator) for c in range(images.classes)]
    index = torch.cat(kept).sort().values
    return replace(images, images=images.images[index], labels=images.labels[index])


def _some(images: ImageSet, c: int, count: int, generator: torch.Generator) -> torch.Tensor:
    members = (images.labels == c).nonzero().squeeze(1)
    return members[torch.randperm(len(members), generator=generator)[:count]]


def _largest(have: list[int], ratio: float) -> int:
    """The largest n_max for which every class has the images that its place in the tail asks for."""
    share = [ratio ** (-c / (len(have) - 1)) for c in range(len(have))]
    return min(int(n / s + 1e-9) for n, s in zip(have, share, strict=True))
