"""Real images with labels ±1: two classes, or the even classes of a set against the odd ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from assay.data.images import ImageSet, load_images, two_classes
from assay.training.seeds import Seeds

from ..problem import Sample

Task = Literal["two classes", "odd or even"]
Labels = Literal["true", "shuffled"]


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Centred images as rows, scaled so that their mean squared norm is their dimension, as that of a standard normal
    input is; thresholds in units of √dim then mean what they mean elsewhere in the study."""

    train: Tensor  # (n, dim)
    train_labels: Tensor  # (n,): ±1
    train_classes: Tensor  # (n,)
    test: Tensor
    test_labels: Tensor
    test_classes: Tensor

    @classmethod
    def of(cls, name: str, task: Task, pair: tuple[int, int], limit: int) -> LabelledImages:
        train, test = (_labelled(load_images(name, split, limit=limit), task, pair) for split in ("train", "test"))
        centre = train[0].mean(0)
        scale = math.sqrt(train[0].shape[1] / float((train[0] - centre).square().sum(1).mean()))
        (x, y, c), (tx, ty, tc) = train, test
        return cls((x - centre) * scale, y, c, (tx - centre) * scale, ty, tc)

    @property
    def dim(self) -> int:
        return self.train.shape[1]

    def sample(self, seeds: Seeds, name: str, n: int, labels: Labels = "true") -> Sample:
        """n different training images of each seed, or all where there are fewer; shuffled labels change hands."""
        index = seeds.permutation(name, len(self.train)).cpu()[:, :n]
        found = self.train_labels[index]
        if labels == "shuffled":
            found = found.gather(1, seeds.permutation(f"{name} shuffled", index.shape[1]).cpu())
        inputs, found = (part.to(seeds.device, seeds.dtype) for part in (self.train[index], found))
        return Sample(inputs, found, self.train_classes[index])

    def tested(self, seeds: Seeds, half: int) -> Sample:
        """Every second test image, the same for all seeds: half 0 to choose with, half 1 to judge by."""
        parts = (self.test[half::2], self.test_labels[half::2], self.test_classes[half::2])
        x, y, c = (part.expand(len(seeds), *part.shape) for part in parts)
        return Sample(x.to(seeds.device, seeds.dtype), y.to(seeds.device, seeds.dtype), c)


def _labelled(images: ImageSet, task: Task, pair: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    if task == "two classes":
        chosen = two_classes(images, *pair)
        return chosen.images.flatten(1), chosen.labels.float(), (chosen.labels > 0).long()
    return images.images.flatten(1), 1.0 - 2.0 * (images.labels % 2), images.labels
