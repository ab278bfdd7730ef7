"""Contrastive pretraining on long-tailed images, with and without forward pruning, read by a balanced linear probe.

Both conditions share network, augmentations, optimiser and schedule; a seed draws the order of the classes in the tail,
the images, the initial weights and every view, so that the comparison is paired.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from assay.data.images import ImageSet
from assay.data.long_tail import balanced, long_tailed
from assay.data.views import random_view
from assay.methods.forward_pruning import ForwardMagnitudePruner, Mode
from assay.networks.resnet import ResNet
from assay.networks.small_cnn import SmallCnn, kaiming_
from assay.probes.head_tail import HeadTail, head_and_tail, head_tail_probe
from assay.training import stream

Network = Literal["cnn", "resnet"]


def make_encoder(network: Network, channels: int, width: int, generator: torch.Generator) -> nn.Sequential:
    """A backbone and a two-layer projector, as ``encoder.backbone`` and ``encoder.projector``."""
    if network == "cnn":
        backbone: nn.Module = SmallCnn(channels, width, generator)
        features = 4 * width
    else:
        backbone = _without_head(ResNet(width, channels=channels, generator=generator))
        features = 8 * width
    projector = nn.Sequential(nn.Linear(features, features), nn.ReLU(), nn.Linear(features, min(128, features)))
    kaiming_(projector, generator)
    return nn.Sequential(OrderedDict(backbone=backbone, projector=projector))


def _without_head(network: nn.Module) -> nn.Module:
    network.head = nn.Identity()
    return network


@dataclass(frozen=True)
class Pretraining:
    """SGD with momentum and a cosine schedule on symmetric, normalised InfoNCE; ``mode`` None is the plain loss.

    ``alpha``, ``scope`` and ``granularity`` are those of ``ForwardMagnitudePruner``; its mask is refreshed every epoch.
    """

    network: Network = "cnn"
    width: int = 16
    epochs: int = 30
    batch: int = 128
    rate: float = 0.1
    tau: float = 0.2
    decay: float = 1e-4
    mode: Mode | None = None
    alpha: float = 0.3

    def encoders(self, images: Tensor, seed: int) -> Iterator[tuple[int, nn.Sequential, float, float]]:
        """Yields (epoch, encoder, mean masked loss, share of weights that were masked), from epoch 0, the start, on."""
        device = images.device
        encoder = make_encoder(self.network, images.shape[1], self.width, stream(seed, "encoder")).to(device)
        if device.type == "cuda":  # the layout that bfloat16 convolutions are fast in
            encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        alpha = 0.0 if self.mode is None else self.alpha
        pruner = ForwardMagnitudePruner(encoder, alpha=alpha, mode=self.mode or "logit_masked")
        optimizer = torch.optim.SGD(encoder.parameters(), lr=self.rate, momentum=0.9, weight_decay=self.decay)
        batch = min(self.batch, len(images))
        steps = len(images) // batch
        views, order = stream(seed, "views"), stream(seed, "image order")
        yield 0, encoder, math.nan, 0.0
        for epoch in range(self.epochs):
            encoder.train()
            total, index = 0.0, torch.randperm(len(images), generator=order).to(device)
            for step in range(steps):
                for group in optimizer.param_groups:
                    part = (epoch + (step + 1) / steps) / self.epochs
                    group["lr"] = self.rate * (1 + math.cos(math.pi * part)) / 2
                chosen = images[index[step * batch : (step + 1) * batch]]
                x, y = random_view(chosen, views), random_view(chosen, views)
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    found = pruner.loss(x, y, tau=self.tau)
                optimizer.zero_grad()
                torch.autograd.backward(found.surrogate)
                optimizer.step()
                total += float(found.loss)
            masked = pruner.report().share
            pruner.end_epoch()
            yield epoch + 1, encoder, total / steps, masked


@dataclass(frozen=True)
class ImageRun:
    """One pretrained encoder: the probe's report, the same probe on the untrained encoder, losses over the epochs."""

    trained: HeadTail
    untrained: HeadTail
    losses: list[float]
    masked: float
    images: int


@dataclass(frozen=True)
class LongTail:
    """``train`` becomes long-tailed with ratio ρ and ``largest`` images in the largest class (fewer, or None: as many
    as there are); the probe sees ``probe`` labelled images per class and is scored on ``test``."""

    train: ImageSet
    test: ImageSet
    ratio: float
    largest: int | None
    probe: int

    def run(self, recipe: Pretraining, seed: int, device: str) -> ImageRun:
        order = torch.randperm(self.train.classes, generator=stream(seed, "class order")).tolist()
        most = int(torch.bincount(self.train.labels).min())
        largest = most if self.largest is None else min(most, self.largest)
        tail = long_tailed(self.train, self.ratio, largest=largest, order=order, generator=stream(seed, "long tail"))
        counts = torch.bincount(tail.labels, minlength=tail.classes).tolist()
        labelled = balanced(self.train, self.probe, generator=stream(seed, "probe images"))
        images, reports, losses, share = tail.images.to(device), {}, [], 0.0
        for epoch, encoder, loss, masked in recipe.encoders(images, seed):
            if epoch in (0, recipe.epochs):
                finite = all(bool(weight.isfinite().all()) for weight in encoder.parameters())
                reports[epoch] = self._probe(encoder, labelled, counts, device) if finite else _no_report(counts)
            if epoch:
                losses.append(loss)
                share = masked
        return ImageRun(reports[recipe.epochs], reports[0], losses, share, len(tail))

    def _probe(self, encoder: nn.Sequential, labelled: ImageSet, counts: list[int], device: str) -> HeadTail:
        features = [_features(encoder, each.images, device) for each in (labelled, self.test)]
        labels = [each.labels.to(device) for each in (labelled, self.test)]
        return head_tail_probe(features[0], labels[0], features[1], labels[1], counts)


def _no_report(counts: list[int]) -> HeadTail:
    """What a diverged pretraining gets: no accuracy, rather than that of a probe on features that are not numbers."""
    return HeadTail(math.nan, torch.full((len(counts),), math.nan), *head_and_tail(counts))


@torch.no_grad()
def _features(encoder: nn.Sequential, images: Tensor, device: str) -> Tensor:
    backbone = encoder.eval().get_submodule("backbone")
    return torch.cat([backbone(chunk.to(device)).float() for chunk in torch.split(images, 1000)])
