"""Small networks on real images, stacked over seeds: pretraining on any labels, then each way to the target task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from assay.training import Seeds

from .problem import Splits


@dataclass(frozen=True)
class Stage:
    """SGD with momentum and a cosine to zero."""

    epochs: int
    batch: int
    rate: float
    momentum: float = 0.9
    decay: float = 5e-4


@dataclass(frozen=True)
class StackedNetwork:
    """Two hidden ReLU layers and a linear head for every seed: weights (seeds, inputs, outputs) and biases."""

    layers: tuple[Tensor, ...]  # weight, bias, weight, bias of the hidden layers, then of the head

    def features(self, inputs: Tensor) -> Tensor:
        """(seeds, n, dim) or (n, dim) -> (seeds, n, features)."""
        hidden = inputs if inputs.ndim == 3 else inputs.expand(len(self.layers[0]), -1, -1)
        for weight, bias in zip(self.layers[:-2:2], self.layers[1:-2:2], strict=True):
            hidden = torch.relu(torch.baddbmm(bias.unsqueeze(1), hidden, weight))
        return hidden

    def __call__(self, inputs: Tensor) -> Tensor:
        return self.head(self.features(inputs))

    def head(self, features: Tensor) -> Tensor:
        return torch.baddbmm(self.layers[-1].unsqueeze(1), features, self.layers[-2])

    def with_head(self, seeds: Seeds, classes: int, name: str) -> StackedNetwork:
        width = self.layers[-2].shape[1]
        weight = seeds.normal(f"{name} {classes}", width, classes) * width**-0.5
        return StackedNetwork((*self.layers[:-2], weight, torch.zeros_like(weight[:, 0])))


def network(seeds: Seeds, inputs: int, widths: Sequence[int], classes: int) -> StackedNetwork:
    """He's initialisation; the head is drawn under a name of its own, so that hidden layers do not depend on it."""
    sizes, layers = (inputs, *widths), []
    for i in range(len(widths)):
        weight = seeds.normal(f"hidden layer {i}", sizes[i], sizes[i + 1]) * math.sqrt(2 / sizes[i])
        layers += [weight, torch.zeros_like(weight[:, 0])]
    empty = torch.zeros(len(seeds), widths[-1], 1, device=seeds.device, dtype=seeds.dtype)
    return StackedNetwork((*layers, empty, empty[:, 0])).with_head(seeds, classes, "first head")


def train(
    net: StackedNetwork,
    inputs: Tensor,
    labels: Tensor,
    stage: Stage,
    seeds: Seeds,
    name: str,
    *,
    head_only: bool = False,
    stop: float = 1.0,
) -> StackedNetwork:
    """Mean cross-entropy of every seed's own labels (seeds, n), batches of its own. ``stop`` takes a checkpoint after
    a share of the steps."""
    n = inputs.shape[1]
    batch = min(stage.batch, n)
    steps = stage.epochs * (n // batch)
    if head_only:
        with torch.no_grad():
            inputs = net.features(inputs)
    layers = [layer.detach().clone() for layer in net.layers]
    trained = layers[-2:] if head_only else layers
    for layer in trained:
        layer.requires_grad_()
    net = StackedNetwork(tuple(layers))
    forward = net.head if head_only else net
    optimizer = torch.optim.SGD(trained, stage.rate, stage.momentum, weight_decay=stage.decay)
    chosen = torch.arange(len(seeds), device=inputs.device).unsqueeze(1)
    for step, index in enumerate(seeds.batches(f"{name} batches", n, batch, max(1, round(stop * steps)))):
        optimizer.param_groups[0]["lr"] = stage.rate * 0.5 * (1 + math.cos(math.pi * step / steps))
        logits = forward(inputs[chosen, index])
        loss = functional.cross_entropy(logits.flatten(0, 1), labels[chosen, index].flatten(), reduction="sum") / batch
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return StackedNetwork(tuple(layer.detach() for layer in layers))


@torch.no_grad()
def error(net: StackedNetwork, inputs: Tensor, labels: Tensor) -> Tensor:
    """The share of wrong answers: (seeds,)."""
    return (net(inputs).argmax(-1) != labels).double().mean(1)


@dataclass(frozen=True)
class Trained:
    """What a protocol gives: the test error (seeds,) at the rate that was best on validation images, and that rate."""

    error: Tensor
    rate: Tensor


@dataclass(frozen=True)
class Recipe:
    """Both stages of a transfer. The rate of the last stage is searched, seed by seed, on ``multiples`` of its own;
    every label function and every baseline gets the same grid."""

    widths: tuple[int, ...]
    pretraining: Stage
    finetuning: Stage
    probing: Stage
    multiples: tuple[float, ...] = (0.5, 1.0, 2.0)

    def pretrain(self, inputs: Tensor, labels: Tensor, seeds: Seeds, *, stop: float = 1.0) -> StackedNetwork:
        start = network(seeds, inputs.shape[-1], self.widths, int(labels.max()) + 1)
        return train(start, inputs, labels, self.pretraining, seeds, "pretraining", stop=stop)

    def onepass(self, splits: Splits, seeds: Seeds) -> Trained:
        """The target labels once."""
        inputs, target = splits.training
        start = network(seeds, inputs.shape[-1], self.widths, int(target.max()) + 1)
        return self._searched(start, self.pretraining, splits, seeds, "pretraining")

    def transfer(
        self, net: StackedNetwork, splits: Splits, seeds: Seeds, *, readout: str = "finetune", epochs: int | None = None
    ) -> Trained:
        """A new head for the target labels, trained with the network or (probe) on its frozen features."""
        stage = self.finetuning if readout == "finetune" else self.probing
        stage = replace(stage, epochs=epochs or stage.epochs)
        fresh = net.with_head(seeds, int(splits.training[1].max()) + 1, "second head")
        return self._searched(fresh, stage, splits, seeds, "finetuning", head_only=readout == "probe")

    def _searched(
        self, start: StackedNetwork, stage: Stage, splits: Splits, seeds: Seeds, name: str, *, head_only: bool = False
    ) -> Trained:
        best = torch.full((len(seeds),), math.inf, dtype=torch.float64, device=splits.training[0].device)
        found, rates = best.clone(), best.clone()
        for multiple in self.multiples:
            tried = replace(stage, rate=stage.rate * multiple)
            net = train(start, *splits.training, tried, seeds, name, head_only=head_only)
            validated, tested = error(net, *splits.validation), error(net, *splits.test)
            better = validated < best
            best = torch.where(better, validated, best)
            found, rates = torch.where(better, tested, found), torch.where(better, tried.rate, rates)
        return Trained(found, rates)
