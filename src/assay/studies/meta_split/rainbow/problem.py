"""RainbowMNIST from any set of grey images: 56 tasks, each one background colour, rotation and scale."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from assay.data.images import ImageSet
from assay.training import Seeds, stream

COLOURS = {
    "red": (1.0, 0.0, 0.0),
    "orange": (1.0, 0.5, 0.0),
    "yellow": (1.0, 1.0, 0.0),
    "green": (0.0, 0.8, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "indigo": (0.3, 0.0, 0.5),
    "violet": (0.9, 0.5, 0.9),
}
ROTATIONS, SCALES = (0, 1, 2, 3), ("full", "half")
COMBINATIONS = list(itertools.product(COLOURS, ROTATIONS, SCALES))
META_TRAINING = 40  # of the 56 combinations; the other 16 are for meta-testing


@dataclass(frozen=True)
class Episodes:
    """Images (seeds, tasks, samples, 3, side, side) and labels (seeds, tasks, samples), class after class: the first
    ``support`` samples of every class come first."""

    images: Tensor
    labels: Tensor
    support: int

    @property
    def queries(self) -> int:
        """Query samples of all tasks: what an accuracy is a share of."""
        tasks, samples = self.labels.shape[1:]
        return tasks * (samples - self.support)

    def parts(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The support and the query samples."""
        cut = self.support
        return (self.images[:, :, :cut], self.labels[:, :, :cut]), (self.images[:, :, cut:], self.labels[:, :, cut:])


class Rainbow:
    """The tasks made of one image set. Rotations and scales are made once; colours when an episode is drawn."""

    def __init__(self, images: ImageSet, side: int, device: str = "cpu") -> None:
        if images.images.shape[1] != 1:
            raise ValueError(f"RainbowMNIST is made of grey images, and {images.name} has colour")
        self.classes = images.classes
        full = _resized(images.images, side)
        small = _resized(images.images, side // 2)
        margin = side - side // 2
        half = functional.pad(small, (margin // 2, margin - margin // 2, margin // 2, margin - margin // 2))
        turned = [torch.rot90(sized, quarter, (-2, -1)) for quarter in ROTATIONS for sized in (full, half)]
        self._bank = torch.stack(turned)[:, :, 0].to(device)
        self._colours = torch.tensor(list(COLOURS.values()), device=device)
        order = torch.argsort(images.labels, stable=True)
        counts = torch.bincount(images.labels, minlength=images.classes)
        self._members, self._counts = order.to(device), counts.to(device)
        self._starts = (counts.cumsum(0) - counts).to(device)

    def draw(self, combinations: Tensor, uniforms: Tensor, support: int, order: Tensor | None = None) -> Episodes:
        """``combinations`` (seeds, tasks) of 0..55; ``uniforms`` (seeds, tasks, classes, per class) choose distinct
        images: each class is cut into as many strata as samples are wanted, and each stratum gives one, in the
        ``order`` of strata given. The first ``support`` of every class form the support set."""
        per_class = uniforms.shape[-1]
        strata = torch.arange(per_class, device=uniforms.device) if order is None else order
        counts = self._counts.reshape(-1, 1)
        # Strata in whole images: with fractional borders two of them could give the same one.
        first, last = strata * counts // per_class, (strata + 1) * counts // per_class - 1
        chosen = torch.minimum(first + (uniforms * (last - first + 1)).long(), last)
        index = self._members[self._starts.reshape(-1, 1) + chosen]
        labels = torch.arange(self.classes, device=index.device).reshape(-1, 1).expand_as(index)
        index, labels = (_support_first(part, support) for part in (index, labels))
        shape = combinations // len(ROTATIONS) // len(SCALES), combinations % (len(ROTATIONS) * len(SCALES))
        grey = self._bank[shape[1].unsqueeze(-1), index].unsqueeze(3)
        colour = self._colours[shape[0]].reshape(*combinations.shape, 1, 3, 1, 1)
        return Episodes(colour * (1 - grey) + grey, labels, support * self.classes)

    def training(self, seeds: Seeds, steps: int, tasks: int, support: int, query: int) -> Iterator[Episodes]:
        """One batch of episodes per outer step, of the seed's meta-training combinations."""
        allowed = seeds.permutation("combinations", len(COMBINATIONS))[:, :META_TRAINING]
        generators = [stream(seed, "episodes") for seed in seeds]
        shape = (tasks, self.classes, support + query)
        for _ in range(steps):
            places = torch.stack([torch.randperm(META_TRAINING, generator=g)[:tasks] for g in generators])
            uniforms = torch.stack([torch.rand(shape, generator=g) for g in generators]).to(seeds.device)
            # A stratum belongs to support or query by chance, not by its place in the set.
            order = torch.stack([torch.rand(shape, generator=g).argsort(-1) for g in generators]).to(seeds.device)
            yield self._shuffled(allowed.gather(1, places.to(seeds.device)), uniforms, order, support)

    def testing(self, seeds: Seeds, repeats: int, support: int, query: int) -> Episodes:
        """``repeats`` episodes of each of the seed's 16 meta-testing combinations."""
        allowed = seeds.permutation("combinations", len(COMBINATIONS))[:, META_TRAINING:].repeat(1, repeats)
        shape = (allowed.shape[1], self.classes, support + query)
        uniforms = seeds.uniform("test images", *shape)
        order = seeds.draw("test order", lambda g: torch.rand(shape, generator=g)).argsort(-1)
        return self._shuffled(allowed, uniforms, order, support)

    def _shuffled(self, combinations: Tensor, uniforms: Tensor, order: Tensor, support: int) -> Episodes:
        per_class = uniforms.shape[-1]
        if int(self._counts.min()) < per_class:
            raise ValueError(
                f"{per_class} different images of a class are wanted, and one has {int(self._counts.min())}"
            )
        return self.draw(combinations, uniforms, support, order)


def _support_first(values: Tensor, support: int) -> Tensor:
    """(..., classes, per class) -> (..., samples), the support samples of all classes before the others."""
    return torch.cat([values[..., :support].flatten(-2), values[..., support:].flatten(-2)], -1)


def _resized(images: Tensor, side: int) -> Tensor:
    larger = side > images.shape[-1]
    options = {"mode": "bilinear", "align_corners": False} if larger else {"mode": "area"}
    return functional.interpolate(images, size=(side, side), **options)
