"""A sentence encoder on few labelled texts: a linear head, fine-tuning, and fine-tuning with two dropout passes; and an
adapter between the frozen encoder and a head, on embeddings that are computed once, with several dropout masks as views
of each text."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from assay.data.text import TextSet
from assay.methods.contrastive_regularization import adapter, contrastive_regularized_loss
from assay.networks.pretrained import Loaded, load_encoder
from assay.probes.heads import ridge_head
from assay.probes.label_efficiency import balanced_order
from assay.training import stream

from ..fine_tuning.learners import share_right, zero_head

TOKENS = 64
TUNING_SEED = 1_000_000  # tuning starts from other weights than any run
DIVERGED = 1e6  # a loss that no training comes back from, before its features are infinite


@lru_cache(maxsize=1)
def loaded_encoder(name: str, device: str) -> Loaded:
    """The encoder, read once per process and not once per unit."""
    return load_encoder(name, device=device)


def tokens(loaded: Loaded, texts: list[str], device: str) -> dict[str, Tensor]:
    made = loaded.tokenizer(texts, padding=True, truncation=True, max_length=TOKENS, return_tensors="pt")
    return {name: value.to(device) for name, value in made.items()}


@torch.no_grad()
def embedded(loaded: Loaded, model: Any, texts: list[str], device: str) -> Tensor:
    """The mean of the last states (n, dim) on the CPU, in evaluation mode."""
    model.eval()
    parts = []
    for start in range(0, len(texts), 100):
        inputs = tokens(loaded, texts[start : start + 100], device)
        parts.append(_mean_states(model, inputs))
    return torch.cat(parts)


def _mean_states(model: Any, inputs: Any) -> Tensor:
    """The mean of the last states over a text's tokens (n, dim), on the CPU."""
    mask = inputs["attention_mask"].unsqueeze(-1)
    mean: Tensor = (model(**inputs).last_hidden_state * mask).sum(1) / mask.sum(1)
    return mean.float().cpu()


def labelled_texts(texts: TextSet, count: int, seed: int) -> tuple[list[str], Tensor]:
    """``count`` texts, balanced over classes."""
    if count > len(texts):
        raise ValueError(f"{texts.name} has {len(texts)} texts, and {count} are asked for")
    order = balanced_order(texts.labels, stream(seed, "labelled texts"))[:count]
    return [texts.texts[k] for k in order.tolist()], texts.labels[order]


@dataclass(frozen=True)
class TextTuning:
    """AdamW on encoder and head, rates that fall to zero; ``strength`` is λ, 0 for the plain loss. Dropout is drawn
    from torch's own generator, seeded around the training and put back."""

    steps: int = 60
    batch: int = 16
    rate: float = 5e-5
    head_rate: float = 5e-3
    strength: float = 0.0

    def accuracy(self, loaded: Loaded, train: tuple[list[str], Tensor], test: TextSet, seed: int, device: str) -> float:
        """Test accuracy after fine-tuning on the labelled texts."""
        texts, labels = train
        model = copy.deepcopy(loaded.model).train()
        head = zero_head(int(loaded.model.config.hidden_size), test.classes).to(device)
        groups: list[dict[str, Any]] = [
            {"params": list(model.parameters()), "lr": self.rate},
            {"params": list(head.parameters())},
        ]
        rule = torch.optim.AdamW(groups, lr=self.head_rate, weight_decay=0.01)
        firsts = (self.rate, self.head_rate)
        order = stream(seed, "batches of texts")
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(stream(seed, "dropout").initial_seed() % 2**63)
            for step in range(self.steps):
                for group, first in zip(rule.param_groups, firsts, strict=True):
                    group["lr"] = first * (1 - step / self.steps)
                chosen = torch.randperm(len(texts), generator=order)[: self.batch].tolist()
                inputs = tokens(loaded, [texts[k] for k in chosen], device)
                answers = labels[chosen].to(device)
                found = contrastive_regularized_loss(
                    model, head, inputs, answers, augment="dropout", lambda_=self.strength
                )
                rule.zero_grad()
                torch.autograd.backward(found.total)
                rule.step()
        scores = head.cpu()(embedded(loaded, model, list(test.texts), device)).detach()
        return (
            float((scores.argmax(1) == test.labels).double().mean()) if bool(scores.isfinite().all()) else float("nan")
        )


def head_accuracy(loaded: Loaded, train: tuple[list[str], Tensor], test: TextSet, device: str) -> float:
    """Test accuracy of a ridge head on the frozen encoder."""
    seen = embedded(loaded, loaded.model, train[0], device)
    guessed = ridge_head(seen, train[1]).predict(embedded(loaded, loaded.model, list(test.texts), device))
    return float((torch.as_tensor(guessed).cpu() == test.labels).double().mean())


@dataclass(frozen=True)
class Embedded:
    """What a frozen encoder makes of texts: ``plain`` (n, dim) without dropout, ``views`` (n, views, dim) with it."""

    plain: Tensor
    views: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Split:
    """Places of a seed's texts in a set, each balanced over classes and none in two of them: to train on, to train on
    while settings are tried, and to try them on."""

    own: Tensor
    tuning: Tensor
    held: Tensor

    @classmethod
    def of(cls, texts: TextSet, labels: int, held: int, seed: int) -> Split:
        if len(texts) < 2 * labels + held:
            raise ValueError(f"{texts.name} has {len(texts)} texts, and {2 * labels} + {held} are asked for")
        order = balanced_order(texts.labels, stream(seed, "labelled texts"))  # begins as that of the arm ``text``
        return cls(order[:labels], order[labels : 2 * labels], order[2 * labels : 2 * labels + held])


@torch.no_grad()
def dropout_views(loaded: Loaded, texts: list[str], views: int, seed: int, device: str) -> Tensor:
    """Means of the last states (n, views, dim) on the CPU, under other dropout masks in each view. Dropout is drawn
    from torch's own generator, seeded around it and put back."""
    parts = []
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(stream(seed, "dropout of views").initial_seed() % 2**63)
        loaded.model.train()
        try:
            for start in range(0, len(texts), 50):
                inputs = tokens(loaded, texts[start : start + 50], device)
                parts.append(torch.stack([_mean_states(loaded.model, inputs) for _ in range(views)], 1))
        finally:
            loaded.model.eval()
    return torch.cat(parts)


def embeddings(loaded: Loaded, texts: TextSet, places: Tensor, views: int, seed: int, device: str) -> Embedded:
    """The texts at these places; without ``views`` they are read once, without dropout."""
    chosen = [texts.texts[k] for k in places.tolist()]
    plain = embedded(loaded, loaded.model, chosen, device)
    drawn = dropout_views(loaded, chosen, views, seed, device) if views else plain.unsqueeze(1)
    return Embedded(plain, drawn, texts.labels[places])


@dataclass(frozen=True)
class HeadTuning:
    """A ridge head on embeddings without dropout; ``penalty`` in units of their mean square."""

    penalty: float

    def accuracy(self, train: Embedded, test: Embedded, seed: int, device: str) -> float:
        guessed = torch.as_tensor(ridge_head(train.plain, train.labels, penalties=(self.penalty,)).predict(test.plain))
        return float((guessed.cpu() == test.labels).double().mean())


@dataclass(frozen=True)
class AdapterTuning:
    """SGD with momentum and a cosine schedule on adapter and head; ``strength`` is λ, 0 for the plain loss. A seed has
    one start, one order of batches and one draw of views, whatever λ is."""

    steps: int = 100
    hidden: int = 1024
    batch: int = 256
    rate: float = 0.06
    decay: float = 5e-4
    strength: float = 0.0
    momentum: float = 0.9

    def train(self, train: Embedded, classes: int, seed: int, device: str) -> nn.Sequential | None:
        """Adapter and head; none where the training diverged."""
        views, labels = train.views.to(device), train.labels.to(device)
        with torch.random.fork_rng(devices=[]):  # layers draw from torch's own generator
            torch.manual_seed(stream(seed, "adapter").initial_seed() % 2**63)
            network = nn.Sequential(adapter(views.shape[2], hidden=self.hidden), zero_head(views.shape[2], classes))
        body, head = network.to(device)
        rule = torch.optim.SGD(network.parameters(), lr=self.rate, momentum=self.momentum, weight_decay=self.decay)
        order, pairs = (stream(seed, name) for name in ("batches of embeddings", "pairs of views"))
        for step in range(self.steps):
            rule.param_groups[0]["lr"] = self.rate * (1 + math.cos(math.pi * step / self.steps)) / 2
            chosen = torch.randperm(len(labels), generator=order)[: self.batch].to(device)
            found = contrastive_regularized_loss(
                body,
                head,
                views[chosen],
                labels[chosen],
                augment="embeddings",
                lambda_=self.strength,
                loss="simclr",
                generator=pairs,
            )
            if not float(found.total.detach()) < DIVERGED:
                return None
            rule.zero_grad()
            torch.autograd.backward(found.total)
            rule.step()
        return network.eval()

    def accuracy(self, train: Embedded, test: Embedded, seed: int, device: str) -> float:
        """On embeddings without dropout; NaN where the training diverged."""
        network = self.train(train, int(max(train.labels.max(), test.labels.max())) + 1, seed, device)
        return math.nan if network is None else share_right(network, test.plain, test.labels)


Way = HeadTuning | AdapterTuning


@dataclass(frozen=True)
class Tuned:
    """Accuracy of every setting on texts kept for it, the setting chosen by it, and what that reaches on test texts."""

    tried: Mapping[str, float]
    chosen: str
    accuracy: float


def tuned(
    settings: Mapping[str, Way], own: Embedded, tuning: Embedded, held: Embedded, test: Embedded, seed: int, device: str
) -> Tuned:
    """Choose among settings on texts that are neither trained nor tested on; the first among equals."""
    tried = {name: way.accuracy(tuning, held, TUNING_SEED + seed, device) for name, way in settings.items()}
    chosen = max(tried, key=lambda name: tried[name] if math.isfinite(tried[name]) else -1.0)
    return Tuned(tried, chosen, settings[chosen].accuracy(own, test, seed, device))
