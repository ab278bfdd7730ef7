"""Learners on two classes of real images: first-layer weights of small networks, and filters of a ResNet.

The source leaves most training settings open. The defaults are those that learn the original task well, on the digits
and on part of MNIST. What that does not decide, above all the scale of the two-layer networks' start, is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
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

Parameters = dict[str, Tensor]


def standardized(train: ImageSet, *others: ImageSet) -> list[Tensor]:
    """Flat inputs (n, dim) of all sets: the training images' mean removed, and one scale for all pixels that makes
    their mean variance 1. The scale is a scalar, as in the pattern model, so that the covariance keeps its shape."""
    flat = train.images.flatten(1)
    mean, scale = flat.mean(dim=0), flat.var(dim=0, correction=0).mean().sqrt()
    return [(each.images.flatten(1) - mean) / scale for each in (train, *others)]


# Two-layer networks on two classes


@dataclass(frozen=True)
class WeightsEpoch:
    """After one epoch (0: before training). ``movement`` is the distance that the weights went in this epoch, as a
    share of the initial norm. All but ``epoch`` and ``weights`` (seeds, neurons, dim) are (seeds,)."""

    epoch: int
    weights: Tensor
    movement: Tensor
    train_loss: Tensor
    train_accuracy: Tensor
    test_accuracy: Tensor


def two_layer_weights(
    train: ImageSet, test: ImageSet, seeds: Seeds, *, width: int = 50, epochs: int = 20, batch: int = 50,
    learning_rate: float = 0.01, momentum: float = 0.95, init_scale: float = 1.0,
) -> Iterator[WeightsEpoch]:  # fmt: skip
    """ReLU networks a·relu(Wx + b) on sets with labels -1 and +1, logistic loss, SGD with momentum; yields every epoch.

    ``init_scale`` 1 starts W at N(0, 1/dim), so that pre-activations are N(0, 1), and a at N(0, 1/width). Accuracy
    hardly depends on it, but how far the weights turn does: the start outweighs what is learned unless it is small.
    """
    if not 1 <= batch <= len(train):
        raise ValueError(f"a batch of {batch} cannot be drawn from {len(train)} images")
    inputs, test_inputs = (part.to(seeds.device, seeds.dtype) for part in standardized(train, test))
    labels, test_labels = (each.labels.to(seeds.device, seeds.dtype) for each in (train, test))
    dim = inputs.shape[1]
    weights = (init_scale * dim**-0.5 * seeds.normal("weights", width, dim)).requires_grad_()
    head = (width**-0.5 * seeds.normal("head", width)).requires_grad_()
    bias = torch.zeros_like(head, requires_grad=True)

    def outputs(x: Tensor) -> Tensor:
        """(seeds, n) of inputs (n, dim) or (seeds, n, dim)."""
        return (torch.relu(x @ weights.mT + bias.unsqueeze(1)) @ head.unsqueeze(2)).squeeze(2)

    def epoch_report(epoch: int, before: Tensor) -> WeightsEpoch:
        with torch.no_grad():
            out, now = outputs(inputs), weights.detach().clone()
            moved = (now - before).flatten(1).norm(dim=1) / start.flatten(1).norm(dim=1)
            accuracy = ((out * labels) > 0).float().mean(dim=1)
            test_accuracy = ((outputs(test_inputs) * test_labels) > 0).float().mean(dim=1)
            return WeightsEpoch(
                epoch, now, moved, functional.softplus(-out * labels).mean(dim=1), accuracy, test_accuracy
            )

    optimizer = torch.optim.SGD([weights, bias, head], lr=learning_rate, momentum=momentum)
    start = before = weights.detach().clone()
    yield epoch_report(0, before)
    steps = len(inputs) // batch
    for step, index in enumerate(seeds.batches("batches", len(inputs), batch, epochs * steps), start=1):
        optimizer.zero_grad()
        functional.softplus(-outputs(inputs[index]) * labels[index]).mean(dim=1).sum().backward()
        optimizer.step()
        if step % steps == 0:
            report = epoch_report(step // steps, before)
            before = report.weights
            yield report


# ResNet filters


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
        return [float(mean[torch.triu_indices(*mean.shape, offset=1).unbind()].min()) for mean in means]

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
        return cls(width, epochs, snapshots, chunk_steps=chunk_steps, batch=batch, learning_rate=rate,
                   shuffle_labels=shuffle_labels)  # fmt: skip

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
            functional.cross_entropy(model(images[index]), labels[index]).backward()
            if step < self.chunks * self.chunk_steps:
                for mean, weight in zip(means, kept, strict=True):
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
    logits = torch.cat([model(chunk) for chunk in images.split(500)])
    return (logits.argmax(dim=1) == labels).float().mean().cpu()
