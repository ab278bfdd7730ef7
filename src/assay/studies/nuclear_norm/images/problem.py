"""Stand-in domains: images in a frame that carries a cue of the class, more reliable in some domains than in others.

Every domain has images of its own, a contrast of its own and its own probability that the cue is that of the true
class. In one of them it mostly is another's. A last share of the images has no cue and no domain: a network is
pretrained on it, as users start from weights that know something of images.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import interpolate, pad

from assay.data.images import ImageSet, load_images
from assay.training.seeds import stream

Cue = Literal["patch", "texture", "none"]
CUES: tuple[Cue, ...] = ("patch", "texture", "none")
FRAME = 2  # pixels on each side
AGREEMENT = {"patch": (0.9, 0.8, 0.7, 0.1), "texture": (0.75, 0.7, 0.65, 0.3), "none": (1.0, 1.0, 1.0, 1.0)}
CONTRAST = (1.0, 0.8, 0.6, 0.7)
NAMES = ("first", "second", "third", "reversed")


@dataclass(frozen=True)
class Domain:
    """Images (n, channels, height, width) with classes (n,) and the classes that their cues belong to (n,). A patch is
    of one class; of a texture each image has its own share of pixels that agree, and ``cues`` is the true class."""

    images: Tensor
    labels: Tensor
    cues: Tensor


@dataclass(frozen=True)
class FramedImages:
    """Domains of one seed. ``patch``: one bright pixel in the frame, whose place tells a class; the class is the true
    one with the domain's probability, else another. ``texture``: many weak pixels ±``weak`` in the frame, whose signs
    are the class's code; each agrees with the code with the domain's probability. ``none``: an empty frame, so that
    domains differ in contrast alone."""

    cue: Cue
    pixels: int = 60
    weak: float = 0.5

    def __post_init__(self) -> None:
        if self.cue not in CUES:
            raise ValueError(f"a cue is one of {', '.join(CUES)}, not {self.cue!r}")
        if self.pixels < 1:
            raise ValueError(f"a texture needs at least 1 pixel, not {self.pixels}")

    def domains(self, source: ImageSet, seed: int) -> dict[str, Domain]:
        """The four domains by name."""
        shares, found = _shares(source, seed), {}
        for place, name in enumerate(NAMES):
            chosen = shares[place]
            images, labels = CONTRAST[place] * source.images[chosen], source.labels[chosen]
            generator = stream(seed, f"cue {self.cue} of {name}")
            framed, cues = self.framed(images, labels, source.classes, AGREEMENT[self.cue][place], generator)
            found[name] = Domain(framed, labels, cues)
        return found

    def framed(
        self, images: Tensor, labels: Tensor, classes: int, agreement: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """The images in frames with cues that agree with the class with this probability, and the cues' classes."""
        if not 0 <= agreement <= 1:
            raise ValueError(f"a probability of agreement lies in [0, 1], not at {agreement}")
        framed = pad(images, [FRAME] * 4)
        if self.cue == "none":
            return framed, labels
        places = frame_places(framed.shape[2], framed.shape[3])
        flat = framed.flatten(2)
        if self.cue == "patch":
            other = (labels + torch.randint(1, classes, labels.shape, generator=generator)) % classes
            cues = torch.where(torch.rand(labels.shape, generator=generator) < agreement, labels, other)
            if len(places) < classes:
                raise ValueError(f"a frame of {len(places)} pixels has no place for each of {classes} classes")
            flat[torch.arange(len(labels)), :, places[cues]] = 1.0
            return framed, cues
        if len(places) < self.pixels:
            raise ValueError(f"a frame of {len(places)} pixels has no place for {self.pixels} weak ones")
        codes = torch.rand(classes, self.pixels, generator=stream(0, "codes of classes")) < 0.5
        agree = torch.rand(len(labels), self.pixels, generator=generator) < agreement
        signs = torch.where(codes[labels] == agree, self.weak, -self.weak)
        flat[:, :, places[: self.pixels]] = signs.unsqueeze(1)
        return framed, labels


def cue_free(source: ImageSet, seed: int) -> Domain:
    """The images of a seed that are in no domain: empty frames, for pretraining."""
    rest = _shares(source, seed)[-1]
    labels = source.labels[rest]
    return Domain(pad(source.images[rest], [FRAME] * 4), labels, labels)


def _shares(source: ImageSet, seed: int) -> tuple[Tensor, ...]:
    """Which images go into each domain, and last those that go into none."""
    return torch.randperm(len(source), generator=stream(seed, "shares of images")).chunk(len(NAMES) + 1)


def frame_places(height: int, width: int) -> Tensor:
    """The flat indices of the frame's pixels, row by row."""
    inside = torch.zeros(height, width, dtype=torch.bool)
    inside[FRAME:-FRAME, FRAME:-FRAME] = True
    return torch.nonzero(~inside.flatten()).squeeze(1)


@lru_cache(maxsize=4)
def source_images(name: str, side: int | None, limit: int) -> ImageSet:
    """The first images of a set, at most so many of its training and test images together, averaged to a side."""
    parts = [load_images(name, split) for split in ("train", "test")]
    images = torch.cat([part.images for part in parts])[:limit]
    labels = torch.cat([part.labels for part in parts])[:limit]
    if side is not None and side != images.shape[-1]:
        images = interpolate(images, size=(side, side), mode="area")
    return ImageSet(images, labels, name, parts[0].classes)
