"""Filters of a ResNet on two classes of real images.

The source leaves most training settings open. The defaults are those that learn the original task well, on the digits
and on part of MNIST.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.data.images import ImageSet
from assay.networks.resnet import ResNet
from assay.probes.directions import unit_rows
from assay.probes.gradient_consistency import chunk_cosines
from assay.training.seeds import Seeds, stream


@dataclass(frozen=True)
class FilterReport:
    """Per stage, flattened filters of the last convolution: ``filters[epoch][stage]`` (seeds, filters, fan_in) and
    ``chunk_means[stage]`` (seeds, chunks, filters, fan_in), gradients averaged over the first chunks of steps."""

    filters: dict[int, list[Tensor]]
    chunk_means: list[Tensor]
    test_accuracy: dict[int, Tensor]

    def smallest_chunk_cosine(self, stage: int) -> list[float]:
        """Per seed, the smallest of the chunk pairs' gradient cosines, each averaged over the filters."""
        means = [chunk_cosines(chunks).pairwise.nanmean(0) for chunks in self.chunk_means[stage]]
        return [float(mean[torch.triu_indices(len(mean), len(mean), offset=1).unbind()].min()) for mean in means]

    def turns(self, stage: int) -> list[Tensor]:
        """1 − cos between consecutive snapshots, averaged over the filters: one (seeds,) per pair of snapshots."""
        unit = [unit_rows(self.filters[epoch][stage]) for epoch in sorted(self.filters)]
        return [1 - (before * after).sum(-1).mean(1) for before, after in pairwise(unit)]


@dataclass(frozen=True)
class ResNetFilters:
    """ResNet(width) on two classes, SGD with momentum. ``keep`` bounds the filters kept per stage, the first ones
    (before training all are alike). ``shuffle_labels`` is the null: the same images, their labels permuted."""

    width: int = 128
    epochs: int = 20
    snapshots: tuple[int, ...] = (0, 3, 20)
    chunks: int = 3
    chunk_steps: int = 10
    batch: int = 128
    learning_rate: float = 0.02
    momentum: float = 0.9
    keep: int = 256
    shuffle_labels: bool = False

    @classmethod
    def fitting(cls, images: int, width: int, epochs: int, rate: float, *, shuffle_labels: bool) -> ResNetFilters:
        """The source's schedule (snapshots at 0, 3 and 20 of 20 epochs, three chunks of ten steps), shrunk where a
        small set has fewer steps."""
        batch = min(128, images // 4)
        chunk_steps = min(10, images // batch * epochs // 3)
        snapshots = (0, max(1, epochs * 3 // 20), epochs)
        return cls(
            width,
            epochs,
            snapshots,
            chunk_steps=chunk_steps,
            batch=batch,
            learning_rate=rate,
            shuffle_labels=shuffle_labels,
        )

    def train(self, train: ImageSet, test: ImageSet, seeds: Seeds) -> FilterReport:
        """Seeds train one after the other: batch normalisation writes its running statistics in place, which a
        vectorised step over stacked networks cannot do, and one such network fills the device anyway."""
        if not all(0 <= epoch <= self.epochs for epoch in self.snapshots):
            raise ValueError(f"snapshots must lie within 0..{self.epochs}, not {self.snapshots}")
        if len(train) // self.batch * self.epochs < self.chunks * self.chunk_steps:
            raise ValueError(f"{self.chunks} chunks of {self.chunk_steps} steps are more steps than this training has")
        mean, scale = train.images.mean(dim=(0, 2, 3), keepdim=True), train.images.std()
        data = [((each.images - mean) / scale, (each.labels > 0).long()) for each in (train, test)]
        runs = [self._one(data, seed, seeds.device) for seed in seeds]
        return FilterReport(
            {epoch: _stack([run.filters[epoch] for run in runs]) for epoch in self.snapshots},
            _stack([run.chunk_means for run in runs]),
            {epoch: torch.stack([run.test_accuracy[epoch] for run in runs]) for epoch in self.snapshots},
        )

    def _one(self, data: list[tuple[Tensor, Tensor]], seed: int, device: str) -> FilterReport:
        (images, labels), (test_images, test_labels) = [(x.to(device), y.to(device)) for x, y in data]
        if self.shuffle_labels:
            labels = labels[torch.randperm(len(labels), generator=stream(seed, "shuffled labels")).to(device)]
        channels = images.shape[1]
        model = ResNet(self.width, classes=2, channels=channels, generator=stream(seed, "resnet")).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=self.learning_rate, momentum=self.momentum)
        kept = [conv.weight for conv in model.last_convolutions()]
        means = [torch.zeros(self.chunks, *_rows(w, self.keep).shape) for w in kept]
        report = FilterReport({}, means, {})

        def look(epoch: int) -> None:
            if epoch in self.snapshots:
                report.filters[epoch] = [_rows(w, self.keep) for w in kept]
                report.test_accuracy[epoch] = _accuracy(model, test_images, test_labels)

        look(0)
        steps = len(images) // self.batch
        batches = Seeds((seed,), device).batches("resnet batches", len(images), self.batch, steps * self.epochs)
        for step, (index,) in enumerate(batches):
            model.train()
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[index]), labels[index])
            loss.backward()  # type: ignore[no-untyped-call]
            if step < self.chunks * self.chunk_steps:
                for mean, weight in zip(means, kept, strict=True):
                    assert weight.grad is not None
                    mean[step // self.chunk_steps] += _rows(weight.grad, self.keep) / self.chunk_steps
            optimizer.step()
            if (step + 1) % steps == 0:
                look((step + 1) // steps)
        return report


def _rows(convolution: Tensor, keep: int) -> Tensor:
    """The first filters as rows (filters, fan_in), on the CPU."""
    return convolution.detach()[:keep].flatten(1).to("cpu", copy=True)


def _stack(per_seed: list[list[Tensor]]) -> list[Tensor]:
    return [torch.stack(stage) for stage in zip(*per_seed, strict=True)]


@torch.no_grad()
def _accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    model.eval()
    logits = torch.cat([model(chunk) for chunk in torch.split(images, 500)])
    return (logits.argmax(dim=1) == labels).float().mean().cpu()
