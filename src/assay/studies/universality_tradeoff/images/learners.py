"""Contrastive pretraining on mixtures of image sets, from scratch for every mixture.

The network ends in few outputs, and the contrast is taken on these: there is room for some features and not for all.
Every set of a mixture gives the same number of images to a batch, so that more sets never mean fewer images of the
target. A seed has one start and, for each set, one order of images and one stream of views, whatever the mixture.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor, nn

from assay.data.images import ImageSet
from assay.data.views import random_view
from assay.methods.contrastive_regularization import contrastive_loss
from assay.methods.momentum_queue import MomentumQueue
from assay.networks.resnet import ResNet
from assay.networks.small_cnn import SmallCnn, kaiming_
from assay.probes.label_efficiency import label_efficiency
from assay.training import stream

from .problem import load_source

Network = Literal["mlp", "cnn", "resnet"]
Loss = Literal["simclr", "moco"]


def make_encoder(network: Network, side: int, width: int, outputs: int, generator: torch.Generator) -> nn.Sequential:
    """From grey images to ``outputs`` features: ``encoder.backbone`` and a linear ``encoder.neck``."""
    if network == "mlp":
        backbone: nn.Module = nn.Sequential(nn.Flatten(), nn.Linear(side * side, width), nn.ReLU())
        kaiming_(backbone, generator)
        features = width
    elif network == "cnn":
        backbone, features = SmallCnn(1, width, generator), 4 * width
    else:
        backbone, features = _without_head(ResNet(width, channels=1, generator=generator)), 8 * width
    neck = nn.Linear(features, outputs)
    nn.init.normal_(neck.weight, std=features**-0.5, generator=generator)
    nn.init.zeros_(neck.bias)
    return nn.Sequential(OrderedDict(backbone=backbone, neck=neck))


def _without_head(network: nn.Module) -> nn.Module:
    network.head = nn.Identity()
    return network


@dataclass(frozen=True)
class Pretraining:
    """AdamW with a cosine schedule; ``batch`` images of every set in each step. ``simclr`` contrasts within the batch,
    ``moco`` with the keys of a slow copy of the network."""

    network: Network = "cnn"
    width: int = 16
    outputs: int = 12
    steps: int = 400
    batch: int = 64
    rate: float = 2e-3
    decay: float = 1e-4
    temperature: float = 0.2
    smallest_crop: float = 0.5
    loss: Loss = "simclr"
    queue: int = 1024
    momentum: float = 0.99

    def start(self, side: int, seed: int, device: str) -> nn.Sequential:
        with torch.random.fork_rng(devices=[]):  # layers draw from torch's own generator before they are drawn anew
            encoder = make_encoder(self.network, side, self.width, self.outputs, stream(seed, "encoder"))
        return encoder.to(device)

    def view(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return random_view(images, generator, smallest=self.smallest_crop)

    def train(self, sets: Mapping[str, Tensor], seed: int, device: str) -> nn.Sequential:
        """An encoder trained on the mixture of these sets of images (n, 1, side, side)."""
        side = next(iter(sets.values())).shape[-1]
        encoder = self.start(side, seed, device)
        images = {name: each.to(device) for name, each in sets.items()}
        views = {name: stream(seed, f"views of {name}") for name in sets}
        orders = {name: _order(len(each), self.batch, stream(seed, f"order of {name}")) for name, each in sets.items()}
        rule = torch.optim.AdamW(encoder.parameters(), lr=self.rate, weight_decay=self.decay)
        loss = contrastive_loss(self.loss, self.temperature)
        slow = MomentumQueue(encoder, self.outputs, size=self.queue, momentum=self.momentum).to(device)
        encoder.train()
        for step in range(self.steps):
            rule.param_groups[0]["lr"] = self.rate * (1 + math.cos(math.pi * step / self.steps)) / 2
            chosen = {name: images[name][next(orders[name]).to(device)] for name in sets}
            # Two views of each image in one go; then all first views, and all second ones.
            pairs = [self.view(chosen[name].repeat(2, 1, 1, 1), views[name]) for name in sets]
            halves = [(pair[: len(pair) // 2], pair[len(pair) // 2 :]) for pair in pairs]
            first, second = (torch.cat(side) for side in zip(*halves, strict=True))
            with torch.autocast(first.device.type, torch.bfloat16, enabled=first.device.type == "cuda"):
                if self.loss == "moco":
                    keys, negatives = slow.keys(encoder, None, second, "mean", nn.Identity())
                    value = loss(encoder(first), keys, negatives)
                    slow.add(keys)
                else:
                    found = encoder(torch.cat([first, second]))
                    value = loss(found[: len(first)], found[len(first) :])
            rule.zero_grad()
            torch.autograd.backward(value)
            rule.step()
        return encoder.eval()


@lru_cache(maxsize=32)
def pretrained(recipe: Pretraining, encoder: str, side: int, limit: int, seed: int, device: str) -> nn.Module:
    """The encoder of a mixture of sets (``a+b``), kept in memory: what is read by heads is fine-tuned as well."""
    sets = {name: load_source(name, "train", side=side, limit=limit).images for name in encoder.split("+")}
    return recipe.train(sets, seed, device)


def _order(count: int, batch: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Batches without end: epochs of shuffled indices."""
    size = min(batch, count)
    while True:
        order = torch.randperm(count, generator=generator)
        yield from torch.split(order[: count // size * size], size)


def target_view(smallest: float) -> Callable[[Tensor], Tensor]:
    """Views with torch's own generator, for methods that seed it themselves."""
    return lambda images: random_view(images, smallest=smallest)


@torch.no_grad()
def features(encoder: nn.Module, images: Tensor) -> Tensor:
    """Features (n, dim) on the CPU."""
    device = next((p.device for p in encoder.parameters()), images.device)
    return torch.cat([encoder(chunk.to(device)).float().cpu() for chunk in torch.split(images, 1000)])


def accuracies(
    encoder: nn.Module, train: ImageSet, test: ImageSet, budgets: Sequence[int], seed: int, draws: int
) -> list[float]:
    """Accuracy of a ridge head at every number of labels, the mean over draws of labelled images. An encoder that
    diverged has none."""
    read = [(features(encoder, each.images), each.labels) for each in (train, test)]
    if not all(bool(found.isfinite().all()) for found, _ in read):
        return [math.nan] * len(budgets)
    seeds = [1000 * seed + draw for draw in range(draws)]
    report = label_efficiency({"encoder": _as_it_is}, *read, budgets=budgets, seeds=seeds, show=False)
    found = dict(zip(report.budgets, report.accuracy[0].mean(1).tolist(), strict=True))
    return [found[budget] for budget in budgets]


def _as_it_is(found: Tensor) -> Tensor:
    return found
