"""Contrastive update, then probe: a few steps of contrastive learning on unlabelled data of the target task bring
forward the features that it uses, before a linear head is trained on the frozen result.

    report = ContrastiveUpdate(steps=100).probe(
        encoder, unlabelled, (images, labels), (test_images, test_labels), augment=random_view, budgets=(20, 100)
    )
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from assay._reports import Report, altair, plain
from assay.probes.heads import ridge_head
from assay.probes.intervals import Interval
from assay.probes.label_efficiency import Head, LabelEfficiency, label_efficiency
from assay.training.seeds import stream

from ._checks import check_fields, limits, seed_list, whole
from ._data import batches_of, moved, rows_of, size_of, split_batch
from ._features import Pool, features_in
from ._models import device_of, output_of
from ._precision import uncached_casts
from ._progress import progress
from .contrastive_regularization import (
    Contrast,
    Views,
    checked_augment,
    checked_views,
    contrastive_loss,
    embedding_pair,
)


@dataclass(frozen=True)
class Updated:
    """A model after the update, in the modes that the original has, and the contrastive loss of every step."""

    model: nn.Module
    losses: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class UpdateReport(Report):
    """Accuracy of a linear head before and after the update, by number of labels and seed, paired; ``losses`` are the
    first and the last contrastive loss of every seed's update."""

    curve: LabelEfficiency
    losses: tuple[tuple[float, float], ...]

    def gains(self) -> list[Interval]:
        """What the update gained at each number of labels, with its interval over the seeds."""
        return self.curve.gap("after", "before")

    def table(self) -> list[dict[str, Any]]:
        before, after = self.curve.curve("before"), self.curve.curve("after")
        rows = zip(self.curve.budgets, before, after, self.gains(), strict=True)
        return [
            {
                "labels": size,
                "before": old.estimate,
                "after": new.estimate,
                "gain": gain.estimate,
                "low": gain.low,
                "high": gain.high,
            }
            for size, old, new, gain in rows
        ]

    def headline(self) -> str:
        signs = [gain.sign for gain in self.gains()]
        seeds = len(self.curve.seeds)
        word = "helps" if min(signs) > 0 else "harms" if max(signs) < 0 else "undecided or mixed"
        return f"UpdateReport: contrastive update, then a linear head, over {seeds} seeds: {word}"

    def figure(self) -> Any:
        alt = altair()
        data = alt.Data(values=plain(self.table()))
        axis = alt.X("labels:Q", title="labels", scale=alt.Scale(type="log", nice=False))
        base = alt.Chart(data).encode(x=axis.axis(values=list(self.curve.budgets), grid=False))
        band = base.mark_errorbar(ticks=True).encode(y=alt.Y("low:Q", title="gain in test accuracy"), y2="high:Q")
        points = base.mark_point(filled=True, size=60).encode(y="gain:Q")
        zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 4]).encode(y="zero:Q")
        gains = (zero + band + points).properties(width=280, height=220)
        return alt.hconcat(self.curve.figure(), gains)


@dataclass(frozen=True)
class ContrastiveUpdate:
    """AdamW with a cosine schedule on a contrastive loss between two views. Every seed has its own batches and views.
    ``pool`` says how tokens or maps become a feature vector."""

    steps: int = field(default=100, metadata=limits(least=1))
    batch_size: int = field(default=64, metadata=limits(least=2))
    learning_rate: float = field(default=5e-4, metadata=limits(above=0))
    weight_decay: float = field(default=0.0, metadata=limits(least=0))
    loss: Contrast = "simclr"
    temperature: float | None = field(default=None, metadata=limits(above=0))
    pool: Pool = "mean"

    def __post_init__(self) -> None:
        check_fields(self)

    def apply(self, model: nn.Module, unlabelled: Any, *, augment: Views, seed: int) -> Updated:
        """A copy of the model, updated on inputs (n, ...), a mapping of tensors or a data loader; labels in them are
        not looked at. ``augment`` is what ``contrastive_regularized_loss`` takes; torch's generators are seeded around
        it and put back."""
        checked_augment(augment)
        own = whole("seed", seed, 0)
        inputs = batches_of(unlabelled, 1)[0] if isinstance(unlabelled, DataLoader) else split_batch(unlabelled)[0]
        if not (len(inputs) if isinstance(inputs, list) else size_of(inputs)):
            raise ValueError("unlabelled holds no sample to update on")
        trained = copy.deepcopy(model)
        modes = {module: module.training for module in trained.modules()}
        trained.train()
        weights = [p for p in trained.parameters() if p.requires_grad]
        if not weights:
            raise ValueError("the model has no trainable parameter to update")
        rule = torch.optim.AdamW(weights, lr=self.learning_rate, weight_decay=self.weight_decay)
        losses: list[float] = []
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())), torch.enable_grad():
            torch.manual_seed(own)
            with uncached_casts():
                for step, batch in enumerate(self._batches(inputs, own)):
                    rule.param_groups[0]["lr"] = self.learning_rate * (1 + math.cos(math.pi * step / self.steps)) / 2
                    losses.append(self._step(trained, rule, batch, augment, stream(own, f"views of step {step}")))
        for module, training in modes.items():
            module.training = training
        return Updated(trained, tuple(losses))

    def _batches(self, inputs: Any, seed: int) -> Iterator[Any]:
        """``steps`` batches: epochs of shuffled samples, or of a data loader's own batches in shuffled order."""
        generator = stream(seed, "batches")
        loaded = isinstance(inputs, list)
        count = len(inputs) if loaded else size_of(inputs)
        size = 1 if loaded else min(self.batch_size, count)
        order = torch.empty(0, dtype=torch.long)
        for _ in range(self.steps):
            if len(order) < size:
                order = torch.randperm(count, generator=generator)
            now, order = order[:size], order[size:]
            yield inputs[int(now[0])] if loaded else rows_of(inputs, now)

    def _step(self, model: nn.Module, rule: Any, batch: Any, augment: Views, generator: torch.Generator) -> float:
        batch = moved(batch, device_of(model))
        if callable(augment):
            views = augment(batch), augment(batch)
        else:
            views = embedding_pair(checked_views(batch), generator) if augment == "embeddings" else (batch, batch)
        first, second = (features_in(output_of(model, view), view, self.pool) for view in views)
        if augment == "dropout" and torch.equal(first, second):
            raise ValueError("two passes gave the same features: the model has no dropout, so give augment")
        if not bool(torch.cat([first, second]).isfinite().all()):
            raise ValueError("features are not finite: the inputs are not, or learning_rate is too large")
        value: Tensor = contrastive_loss(self.loss, self.temperature)(first, second)
        rule.zero_grad()
        torch.autograd.backward(value)
        rule.step()
        return float(value.detach())

    def probe(
        self,
        model: nn.Module,
        unlabelled: Any,
        train: Any,
        test: Any,
        *,
        augment: Views,
        budgets: int | Sequence[int],
        seeds: int | Sequence[int] = 8,
        head: Head = ridge_head,
        show: bool | None = None,
    ) -> UpdateReport:
        """Update a copy for every seed, then read it and the original with a linear head at every number of labels."""
        chosen = seed_list(seeds)
        updated = [
            self.apply(model, unlabelled, augment=augment, seed=seed) for seed in progress(chosen, "update: seed", show)
        ]
        versions: dict[str, Any] = {"before": model, "after": [each.model for each in updated]}
        curve = label_efficiency(
            versions, train, test, budgets=budgets, seeds=chosen, head=head, pool=self.pool, show=show
        )
        return UpdateReport(curve, tuple((each.losses[0], each.losses[-1]) for each in updated))
