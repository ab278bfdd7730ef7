"""Three ways to use a pretrained encoder on few labelled images: a linear head, fine-tuning, and fine-tuning with a
contrastive regulariser. All get the same labelled images; both kinds of fine-tuning the same start, batches, labelled
views and number of steps."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import partial
from statistics import fmean

import torch
from torch import Tensor, nn

from assay.data.images import ImageSet
from assay.data.views import random_view
from assay.methods.contrastive_regularization import contrastive_regularized_loss
from assay.probes.heads import ridge_head
from assay.probes.label_efficiency import balanced_order
from assay.training import stream

from ..images.learners import features


def zero_head(inputs: int, classes: int) -> nn.Linear:
    """A linear layer of zeros; torch's own generator stays where it is."""
    with torch.random.fork_rng(devices=[]):
        head = nn.Linear(inputs, classes)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


@dataclass(frozen=True)
class FineTuning:
    """AdamW with a cosine schedule on encoder and head; ``strength`` is λ of the regulariser, 0 for the plain loss."""

    steps: int = 150
    batch: int = 32
    rate: float = 1e-3
    decay: float = 0.0
    strength: float = 0.0
    smallest_crop: float = 0.3
    temperature: float = 0.2

    def train(self, start: nn.Module, images: Tensor, labels: Tensor, classes: int, seed: int) -> nn.Sequential:
        """A copy of the encoder and a head, trained on these images."""
        device = next(start.parameters()).device
        encoder = copy.deepcopy(start).train()
        head = zero_head(features(start.eval(), images[:1]).shape[1], classes)
        whole = nn.Sequential(encoder, head.to(device))
        rule = torch.optim.AdamW(whole.parameters(), lr=self.rate, weight_decay=self.decay)
        images, labels = images.to(device), labels.to(device)
        # The regulariser has a stream of its own, so that λ changes nothing else.
        order, views, others = (stream(seed, f"fine-tuning, {name}") for name in ("order", "views", "second views"))
        for step in range(self.steps):
            rule.param_groups[0]["lr"] = self.rate * (1 + math.cos(math.pi * step / self.steps)) / 2
            chosen = torch.randperm(len(images), generator=order)[: self.batch].to(device)
            batch = images[chosen]
            found = contrastive_regularized_loss(
                encoder,
                head,
                random_view(batch, views, smallest=self.smallest_crop),
                labels[chosen],
                augment=partial(self._again, batch, others),
                lambda_=self.strength,
                loss="simclr",
                temperature=self.temperature,
            )
            rule.zero_grad()
            torch.autograd.backward(found.total)
            rule.step()
        return whole.eval()

    def _again(self, images: Tensor, generator: torch.Generator, _: Tensor) -> Tensor:
        """A second view of the images themselves, and not of their first view."""
        return random_view(images, generator, smallest=self.smallest_crop)


def labelled(train: ImageSet, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Indices of ``count`` images, balanced over classes, and of all others."""
    if count > len(train):
        raise ValueError(f"{train.name} has {len(train)} images to train on, and {count} are asked for")
    order = balanced_order(train.labels, stream(seed, "labelled images"))
    return order[:count], order[count:]


def share_right(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Accuracy; a network that diverged has none."""
    scores = features(network, images)
    return float((scores.argmax(1) == labels).double().mean()) if bool(scores.isfinite().all()) else math.nan


def probed(encoder: nn.Module, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> float:
    """Accuracy of a ridge head on the frozen encoder."""
    seen, unseen = (features(encoder, images) for images, _ in (train, test))
    if not bool(seen.isfinite().all() and unseen.isfinite().all()):
        return math.nan
    guessed = torch.as_tensor(ridge_head(seen, train[1]).predict(unseen))
    return float((guessed.cpu() == test[1]).double().mean())


def pixel_accuracy(train: ImageSet, test: ImageSet, labels: int, seed: int, draws: int) -> float:
    """Accuracy of a ridge head on raw pixels, the mean over draws of labelled images; they are those of fine-tuning."""
    found = []
    for draw in range(draws):
        chosen, _ = labelled(train, labels, 1000 * seed + draw)
        found.append(probed(nn.Flatten(), (train.images[chosen], train.labels[chosen]), (test.images, test.labels)))
    return fmean(found)


def separation(found: Tensor, labels: Tensor) -> float:
    """Variance between class means over variance within classes, of features of length 1."""
    rows = nn.functional.normalize(found.double(), dim=1)
    classes = torch.unique(labels)
    means = torch.stack([rows[labels == c].mean(0) for c in classes])
    shares = torch.stack([(labels == c).double().mean() for c in classes])
    between = ((means - rows.mean(0)).square().sum(1) * shares).sum()
    around = [(rows[labels == c] - mean).square().sum(1).mean() for c, mean in zip(classes, means, strict=True)]
    return float(between / (torch.stack(around) * shares).sum())
