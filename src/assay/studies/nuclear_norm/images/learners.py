"""Networks, the methods that are compared, and CORAL and IRM as objectives of the leave-one-domain-out protocol."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from assay.evaluation import Algorithm
from assay.methods import SWAD, Mixup, NuclearNorm
from assay.networks.resnet import ResNet
from assay.networks.small_cnn import SmallCnn
from assay.training.seeds import stream

from .problem import Domain, cue_free, source_images

Network = Literal["perceptron", "cnn", "resnet"]
Batch = tuple[Tensor, Tensor]


class Classifier(nn.Module):
    """A linear head on features (batch, width) that are not negative."""

    def __init__(self, features: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        self.features, self.head = features, nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(images))
        return logits


def make_network(kind: Network, shape: Sequence[int], width: int, classes: int, seed: int) -> Classifier:
    """A network for images of this shape (channels, height, width), its start drawn from the seed. ``width`` are the
    features of a perceptron, and the first stage's channels of the others."""
    generator = stream(seed, f"start of a {kind}")
    channels = shape[0]
    if kind == "perceptron":
        inputs, hidden = channels * shape[1] * shape[2], 4 * width
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator.initial_seed())
            body = nn.Sequential(
                nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, width), nn.ReLU()
            )
            return Classifier(body, width, classes)
    if kind == "cnn":
        body, size = nn.Sequential(SmallCnn(channels, width, generator)), 4 * width
    else:
        whole = ResNet(width, classes=classes, channels=channels, generator=generator)
        body, size = nn.Sequential(whole.stem, *whole.stages, nn.AdaptiveAvgPool2d(1), nn.Flatten()), 8 * width
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator.initial_seed())
        return Classifier(body, size, classes)


@dataclass(frozen=True)
class Pretraining:
    """A network and Adam on images without cues: what every method starts from."""

    network: Network
    width: int
    steps: int
    rate: float
    batch: int

    def train(self, domain: Domain, classes: int, seed: int, device: str) -> Classifier:
        network = make_network(self.network, domain.images.shape[1:], self.width, classes, seed).to(device)
        optimiser = torch.optim.Adam(network.parameters(), self.rate)
        generator = stream(seed, "order of pretraining")
        for _ in range(self.steps):
            chosen = torch.randint(len(domain.labels), (self.batch,), generator=generator)
            loss = cross_entropy(network(domain.images[chosen].to(device)), domain.labels[chosen].to(device))
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
        return network


@lru_cache(maxsize=16)
def pretrained(recipe: Pretraining, images: str, side: int | None, limit: int, seed: int, device: str) -> Classifier:
    """The pretrained network of a seed, kept in memory: every method on every cue starts from copies of it."""
    source = source_images(images, side, limit)
    return recipe.train(cue_free(source, seed), source.classes, seed, device)


class Kept:
    """What the protocol asks for a model: every training starts from the same weights, and the last one is kept."""

    def __init__(self, network: Classifier) -> None:
        self.start = self.last = network

    def __call__(self, classes: int) -> nn.Module:
        self.last = copy.deepcopy(self.start)
        return self.last


def stopped_at(level: float, validation: Sequence[float], outside: Sequence[float]) -> float:
    """The best accuracy outside that a training shows at a look with at least this validation accuracy, as if one had
    stopped it there; where it has no such look, at its looks with the best one. NaN where a number is not finite."""
    if not all(map(math.isfinite, (level, *validation, *outside))):
        return math.nan
    reached = min(level, max(validation))
    return max(there for here, there in zip(validation, outside, strict=True) if here >= reached)


@dataclass(frozen=True)
class CORAL:
    """Cross-entropy plus ``lam`` times the distance of the domains' feature means and covariances, over all pairs."""

    lam: float = 1.0

    def __call__(self, model: nn.Module, batches: Sequence[Batch]) -> Tensor:
        assert isinstance(model, Classifier)
        features = [model.features(inputs) for inputs, _ in batches]
        losses = [cross_entropy(model.head(f), y) for f, (_, y) in zip(features, batches, strict=True)]
        apart = [_distance(a, b) for i, a in enumerate(features) for b in features[i + 1 :]]
        return torch.stack(losses).mean() + self.lam * torch.stack(apart).mean()


@dataclass(frozen=True)
class IRM:
    """Cross-entropy plus ``lam`` times the squared slope of each domain's loss along a scale of the logits (IRMv1)."""

    lam: float = 1.0

    def __call__(self, model: nn.Module, batches: Sequence[Batch]) -> Tensor:
        losses, slopes = [], []
        for inputs, labels in batches:
            logits = model(inputs)
            scale = torch.ones((), device=logits.device, requires_grad=True)
            halves = [cross_entropy(scale * logits[at::2], labels[at::2]) for at in (0, 1)]
            found = [torch.autograd.grad(half, scale, create_graph=True)[0] for half in halves]
            losses.append(cross_entropy(logits, labels))
            slopes.append(found[0] * found[1])  # of two halves: without the bias of a square
        return torch.stack(losses).mean() + self.lam * torch.stack(slopes).mean()


@dataclass(frozen=True)
class FrobeniusNorm(NuclearNorm):
    """The control: ``lam`` times the Frobenius norm of the features in place of the nuclear norm. It shrinks all
    directions alike."""

    def normalised(self, values: Tensor, rows: int) -> Tensor:
        length = values.square().sum(-1).clamp(min=torch.finfo(values.dtype).tiny).sqrt()
        return length / rows


@dataclass(frozen=True)
class Methods:
    """The algorithms that are compared, each with one range for the rate and at most one range of its own."""

    rate: float
    warmup: int
    classes: int
    strengths: tuple[float, float] = (0.01, 1.0)

    def __call__(self, name: str) -> Algorithm:
        base, _, norm = name.partition("-")
        made = Algorithm(name, learning_rate=self.rate, search={"learning_rate": (self.rate / 3, 3 * self.rate)})
        if base == "Mixup":
            made = replace(made, mixup=Mixup(0.2))
        if base == "SWAD":
            made = replace(made, averaging=SWAD)
        if norm == "NU":
            return self._with(made, NuclearNorm(self._middle, self.warmup, every=0), self.strengths)
        if norm == "rank":
            limit = NuclearNorm(1.0, self.warmup, max_rank=self.classes, every=0)
            return self._with(made, limit, (0.1, 10.0))
        if norm == "decay":
            return replace(made, weight_decay=1e-3, search={**made.search, "weight_decay": (1e-4, 1e-2)})
        if name in ("CORAL", "IRM"):
            objective = CORAL() if name == "CORAL" else IRM()
            return replace(made, objective=objective, search={**made.search, "objective.lam": (0.1, 10.0)})
        return made

    @property
    def _middle(self) -> float:
        return math.sqrt(self.strengths[0] * self.strengths[1])

    def _with(self, made: Algorithm, penalty: NuclearNorm, span: tuple[float, float]) -> Algorithm:
        return replace(made, penalty=penalty, search={**made.search, "penalty.lam": span})


def _distance(a: Tensor, b: Tensor) -> Tensor:
    """Squared differences of means and covariances, averaged over their entries."""
    spreads = [(x - x.mean(0)).mT @ (x - x.mean(0)) / max(len(x) - 1, 1) for x in (a, b)]
    return (a.mean(0) - b.mean(0)).square().mean() + (spreads[0] - spreads[1]).square().mean()
