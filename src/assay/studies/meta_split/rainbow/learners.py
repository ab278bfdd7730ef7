"""FOMAML and Reptile on stacked convolutional networks: all seeds and all tasks of a step in one grouped pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from assay.training import Seeds

from .problem import Episodes, Rainbow

Weights = dict[str, Tensor]  # each (stack, ...)
TESTED_TOGETHER = 8  # tasks that are adapted to and tested in one pass


@dataclass(frozen=True)
class ConvNet:
    """Blocks of 3×3 convolution, normalisation by batch statistics, activation and 2×2 pooling, then a linear head.
    ``knee`` 0 is ReLU. The first axis of weights and inputs is a stack of independent networks."""

    side: int
    classes: int
    blocks: int = 4
    channels: int = 32
    knee: float = 0.5

    def __post_init__(self) -> None:
        if self.side < 2**self.pooled or self.blocks < 1:
            raise ValueError(f"images of side {self.side} cannot be halved {self.pooled} times")
        if self.knee < 0:
            raise ValueError("the knee must be positive, or 0 for ReLU")

    @property
    def pooled(self) -> int:
        """Blocks that pool: at most four (a deeper network pools in its first four blocks)."""
        return min(self.blocks, 4)

    def initial(self, seeds: Seeds) -> Weights:
        """He initialisation, a stack of one network per seed."""
        weights: Weights = {}
        inputs = 3
        for block in range(self.blocks):
            shape = (self.channels, inputs, 3, 3)
            weights[f"conv{block}"] = (2 / (inputs * 9)) ** 0.5 * seeds.normal(f"conv{block}", *shape)
            weights[f"scale{block}"] = torch.ones(len(seeds), self.channels, device=seeds.device, dtype=seeds.dtype)
            weights[f"shift{block}"] = torch.zeros_like(weights[f"scale{block}"])
            inputs = self.channels
        features = self.channels * (self.side // 2**self.pooled) ** 2
        weights["head"] = features**-0.5 * seeds.normal("head", self.classes, features)
        weights["bias"] = torch.zeros(len(seeds), self.classes, device=seeds.device, dtype=seeds.dtype)
        return weights

    def outputs(self, weights: Weights, images: Tensor) -> Tensor:
        """Logits (stack, samples, classes) of images (stack, samples, 3, side, side)."""
        stack, samples = images.shape[:2]
        x = images.transpose(0, 1).flatten(1, 2)
        if x.device.type == "cpu":  # 0.6 of the time there, 1.1 on a GPU
            x = x.contiguous(memory_format=torch.channels_last)
        for block in range(self.blocks):
            x = functional.conv2d(x, weights[f"conv{block}"].flatten(0, 1), padding=1, groups=stack)
            scale, shift = weights[f"scale{block}"].flatten(), weights[f"shift{block}"].flatten()
            x = functional.batch_norm(x, None, None, scale, shift, training=True)
            # The activation is monotone, so it commutes with pooling, and a quarter of the entries is left to it.
            x = self._activate(functional.max_pool2d(x, 2) if block < self.pooled else x)
        flat = x.reshape(samples, stack, -1).transpose(0, 1)
        return flat @ weights["head"].mT + weights["bias"].unsqueeze(1)

    def _activate(self, x: Tensor) -> Tensor:
        positive = functional.relu(x)
        if self.knee == 0:
            return positive
        bent = positive.clamp(max=self.knee)
        return positive - bent + bent.square() / (2 * self.knee)


@dataclass(frozen=True)
class MetaTraining:
    """One meta-learner: ``split`` is train-train, train-validation or reptile. FOMAML's outer step is Adam at
    ``outer_rate``; Reptile moves a share ``outer_rate`` of the way to the adapted weights."""

    split: str
    inner_rate: float = 0.1
    outer_rate: float = 0.01
    inner_steps: int = 5

    def __post_init__(self) -> None:
        if self.split not in ("train-train", "train-validation", "reptile"):
            raise ValueError(f"unknown split '{self.split}'")
        if self.split == "reptile" and not 0 < self.outer_rate <= 1:
            raise ValueError("Reptile moves a share in (0, 1] of the way")

    def train(self, net: ConvNet, weights: Weights, batches: Iterable[Episodes]) -> Iterator[tuple[Weights, Tensor]]:
        """Yields the weights (seeds, ...) after every outer step, and the meta-training loss (seeds,) of that step."""
        weights = {name: value.clone().requires_grad_() for name, value in weights.items()}
        optimizer = torch.optim.Adam(weights.values(), lr=self.outer_rate)
        for episodes in batches:
            seeds, tasks = episodes.labels.shape[:2]
            support, query = episodes.parts()
            if self.split != "train-validation":
                support = query = (episodes.images, episodes.labels)
            flat = [(images.flatten(0, 1), labels.flatten(0, 1)) for images, labels in (support, query)]
            adapted = adapt(net, _repeated(weights, tasks), *flat[0], self.inner_rate, self.inner_steps)
            losses, slopes = _slopes(net, adapted, *flat[1])
            with torch.no_grad():
                for name, value in weights.items():
                    if self.split == "reptile":
                        value += self.outer_rate * (_mean(adapted[name], tasks) - value)
                    else:
                        value.grad = _mean(slopes[name], tasks)
            if self.split != "reptile":
                optimizer.step()
            yield weights, losses.reshape(seeds, tasks).mean(1)


def adapt(net: ConvNet, weights: Weights, images: Tensor, labels: Tensor, rate: float, steps: int) -> Weights:
    """``steps`` of gradient descent on each stacked network's own samples."""
    for _ in range(steps):
        _, slopes = _slopes(net, weights, images, labels)
        weights = {name: value.detach() - rate * slopes[name] for name, value in weights.items()}
    return weights


@torch.no_grad()
def accuracies(net: ConvNet, weights: Weights, episodes: Episodes, rate: float, steps: int) -> tuple[Tensor, Tensor]:
    """Accuracy per task (seeds, tasks) on query samples: after adaptation to the support samples, and before."""
    (images, labels), (query, truth) = episodes.parts()
    found: list[list[Tensor]] = [[], []]
    for part in torch.split(torch.arange(labels.shape[1], device=labels.device), TESTED_TOGETHER):
        start = _repeated(weights, len(part))
        with torch.enable_grad():
            adapted = adapt(net, start, images[:, part].flatten(0, 1), labels[:, part].flatten(0, 1), rate, steps)
        for place, state in enumerate((adapted, start)):
            guess = net.outputs(state, query[:, part].flatten(0, 1)).argmax(-1)
            right = torch.unflatten(guess, 0, (-1, len(part))) == truth[:, part]
            found[place].append(right.float().mean(-1))
    return torch.cat(found[0], 1), torch.cat(found[1], 1)


@dataclass(frozen=True)
class Schedule:
    """Outer steps, times that the network is tested on the way, tasks in a step, support samples per class (and as many
    query samples), episodes per meta-testing task and test images per class in each."""

    steps: int
    looks: int
    tasks: int
    shots: int
    repeats: int
    queries: int


def meta_train(
    net: ConvNet, method: MetaTraining, source: Rainbow, unseen: Rainbow, seeds: Seeds, schedule: Schedule
) -> Iterator[dict[str, Any]]:
    """Accuracy on the 16 meta-testing tasks, adapted and not, a few times along the way; ``answers`` is the number of
    test images that it is a share of."""
    weights = net.initial(seeds)
    episodes = unseen.testing(seeds, schedule.repeats, schedule.shots, schedule.queries)
    every = max(1, schedule.steps // schedule.looks)

    def look(step: int) -> dict[str, Any]:
        adapted, before = accuracies(net, weights, episodes, method.inner_rate, method.inner_steps)
        spread = 1.96 * adapted.std(1) / adapted.shape[1] ** 0.5
        accuracy = {"accuracy": adapted.mean(1), "unadapted_accuracy": before.mean(1), "task_interval": spread}
        return {"step": step, "answers": episodes.queries, **accuracy}

    yield look(0)
    batches = source.training(seeds, schedule.steps, schedule.tasks, schedule.shots, schedule.shots)
    losses = []
    for step, (now, loss) in enumerate(method.train(net, weights, batches), start=1):
        weights = now
        losses.append(loss)
        if step % every == 0 or step == schedule.steps:
            yield {**look(step), "meta_loss": torch.stack(losses[-every:]).mean(0)}


def _slopes(net: ConvNet, weights: Weights, images: Tensor, labels: Tensor) -> tuple[Tensor, Weights]:
    leaves = {name: value.detach().requires_grad_() for name, value in weights.items()}
    logits = net.outputs(leaves, images)
    losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").reshape(labels.shape)
    slopes = torch.autograd.grad(losses.mean(1).sum(), list(leaves.values()))
    return losses.detach().mean(1), dict(zip(leaves, slopes, strict=True))


def _repeated(weights: Weights, tasks: int) -> Weights:
    return {name: value.detach().repeat_interleave(tasks, 0) for name, value in weights.items()}


def _mean(value: Tensor, tasks: int) -> Tensor:
    return torch.unflatten(value, 0, (-1, tasks)).mean(1)
