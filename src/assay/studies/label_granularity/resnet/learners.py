"""Every label function with a ResNet on real images: the small version of the source's in-dataset transfer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional

from assay.data.images import ImageSet, load_images
from assay.methods.granularity import FineToCoarse, Stage
from assay.networks.resnet import ResNet
from assay.training import stream

from ..images.problem import LEVELS, class_tree, hierarchy_of, superclasses

VALIDATION = 10  # every tenth training image chooses the finetuned epoch


@dataclass(frozen=True)
class SweepResult:
    error: float
    tested: int  # images that the error is a share of
    classes: int
    purity: float


class Augment:
    """Shifts by up to an eighth of the side, and mirror images of colour pictures."""

    def __init__(self, seed: int) -> None:
        self.generator = stream(seed, "augmentation")

    def __call__(self, images: Tensor) -> Tensor:
        n, channels, side, _ = images.shape
        reach = side // 8
        shift = torch.randint(0, 2 * reach + 1, (n, 2), generator=self.generator).to(images.device)
        flip = (torch.rand(n, generator=self.generator) < (0.5 if channels == 3 else 0.0)).to(images.device)
        padded = functional.pad(images, (reach,) * 4)
        span = torch.arange(side, device=images.device)
        columns = torch.where(flip[:, None], side - 1 - span, span) + shift[:, 1:]
        rows = span + shift[:, :1]
        each = torch.arange(n, device=images.device)[:, None, None, None]
        planes = torch.arange(channels, device=images.device)[None, :, None, None]
        return padded[each, planes, rows[:, None, :, None], columns[:, None, None, :]]


@dataclass(frozen=True)
class ResNetSweep:
    """The source's recipe scaled down: SGD with momentum 0.9 and a cosine after a warm-up, batch 1,024 and rate 0.4 in
    pretraining, a quarter of both in finetuning; no rate is searched, the best epoch on validation images counts."""

    images: str
    limit: int
    width: int
    epochs: int

    def run(self, scheme: str, clusters: int, seed: int, device: str) -> SweepResult:
        train, test = _loaded(self.images, self.limit, device), _loaded(self.images, None, device, "test")
        coarse = superclasses(self.images).to(device)
        kept = torch.arange(len(train), device=device) % VALIDATION != 0
        images, leaves = train.images[kept], train.labels[kept]
        validation = (train.images[~kept], coarse[train.labels[~kept]])
        tested = (test.images, coarse[test.labels])
        clustered = scheme in ("clusters per class", "clusters of all")
        embedded = rotation_embedding(self, seed, device)[kept.cpu()] if clustered else images
        name = "tree" if scheme in LEVELS else "coarse" if scheme == "one pass" else scheme
        level, tree = LEVELS.get(scheme, clusters), class_tree(self.images)
        hierarchy = hierarchy_of(name, level, embedded, leaves, coarse[leaves], seed, tree=tree)
        method, model = self.method(seed, len(images), device), self.model(seed, train, device)
        run = method.onepass if scheme == "one pass" else method.transfer
        score = run(model, images, hierarchy, validation=validation, test=tested, seed=seed)
        return SweepResult(score.error, len(test), hierarchy.classes, hierarchy.purity)

    def method(self, seed: int, samples: int, device: str) -> FineToCoarse:
        batch = min(1024, max(16, samples // 8))
        stage = Stage(self.epochs, batch, 0.4 * batch / 1024)
        precision = "bfloat16" if device == "cuda" else "float32"
        return FineToCoarse(stage, rates=(1.0,), head="head", augment=Augment(seed), precision=precision)

    def model(self, seed: int, data: ImageSet, device: str) -> ResNet:
        model = ResNet(self.width, classes=2, channels=data.images.shape[1], generator=stream(seed, "resnet"))
        model.to(device, memory_format=_layout(device))  # type: ignore[call-overload]  # unknown to torch's stubs
        return model


def _layout(device: str) -> torch.memory_format:
    """Where bfloat16 convolutions are fast. On processors without AVX-512 torch 2.13 writes beyond its memory in the
    gradient of a 1x1 convolution with stride 2 and few channels in that layout."""
    return torch.channels_last if device == "cuda" else torch.contiguous_format


@lru_cache(maxsize=2)
def _loaded(name: str, limit: int | None, device: str, split: str = "train") -> ImageSet:
    found = load_images(name, split, limit=limit)
    images = (found.images - 0.5).to(device, memory_format=_layout(device))
    return ImageSet(images, found.labels.to(device), found.name, found.classes)


@lru_cache(maxsize=4)
def rotation_embedding(sweep: ResNetSweep, seed: int, device: str) -> Tensor:
    """Features of a network that learned to tell by how many quarter turns an image was rotated: no label is used.
    (n, dim), on the CPU."""
    data = _loaded(sweep.images, sweep.limit, device)
    turned = torch.cat([data.images.rot90(turns, (2, 3)) for turns in range(4)])
    labels = torch.arange(4).repeat_interleave(len(data))
    method = sweep.method(seed, len(turned), device)
    trained = method.pretrained(sweep.model(seed, data, device), turned, labels, seed=seed)
    return method.features(trained, data.images)
