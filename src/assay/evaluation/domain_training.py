"""One training of one algorithm on some domains, with looks at held-out samples and at other domains on the way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from assay.training.seeds import stream

from .domain_checks import Check, Course, Look, autocast, logits_of
from .domain_data import Batch, Samples, endless, joined, moved

MakeModel = Callable[[int], nn.Module]
Objective = Callable[[nn.Module, Sequence[Batch]], Tensor]


class Averager(Protocol):
    """What averages weights along a training, as ``SWAD`` does."""

    def update(self) -> None: ...
    def check(self, loss: float) -> bool: ...
    def averaged(self) -> nn.Module: ...


@dataclass(frozen=True)
class Algorithm:
    """A way of training: by default the mean cross-entropy over all domains' batches, by Adam.

    ``penalty`` is attached to the model, at ``layer`` or its head, and added to the loss (``NuclearNorm``); ``mixup``
    mixes the joint batch (``Mixup``); ``averaging(model)`` follows the weights (``SWAD``) and its average is what is
    judged. ``objective(model, batches)`` replaces the cross-entropy, with one batch (inputs, labels) per training
    domain. ``search`` has ranges (low, high), drawn on a logarithmic scale, for ``learning_rate``, ``weight_decay`` or
    a setting of a part, as ``"penalty.lam"``; the first trial of a tuning is always the algorithm as it stands.
    """

    name: str
    learning_rate: float = 5e-5
    weight_decay: float = 0.0
    penalty: Any = None
    layer: str | None = None
    mixup: Any = None
    averaging: Callable[[nn.Module], Averager] | None = None
    objective: Objective | None = None
    search: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.objective is not None and self.mixup is not None:
            raise ValueError(f"{self.name}: an objective of its own and mixup exclude each other")
        for name, (low, high) in self.search.items():
            if not (math.isfinite(high) and 0 < low <= high):
                raise ValueError(f"{self.name}: the range of {name} must be positive and rise, not ({low}, {high})")
            self._check_setting(name)

    def drawn(self, seed: int, trial: int) -> dict[str, float]:
        """The settings of a trial; the same name has the same place in its range whichever algorithm asks."""
        if trial == 0:
            return {}
        found = {}
        for name, (low, high) in self.search.items():
            place = float(torch.rand((), generator=stream(seed, f"trial {trial} {name}"), dtype=torch.float64))
            found[name] = low * (high / low) ** place
        return found

    def with_settings(self, settings: Mapping[str, float]) -> Algorithm:
        """The algorithm with some of its settings replaced."""
        changed = self
        for name, value in settings.items():
            self._check_setting(name)
            part, _, inner = name.partition(".")
            new: dict[str, Any] = {part: replace(getattr(changed, part), **{inner: value}) if inner else value}
            changed = replace(changed, **new)
        return changed

    def _check_setting(self, name: str) -> None:
        part, _, inner = name.partition(".")
        held: Any = getattr(self, part, None)
        if (inner and (held is None or not hasattr(held, inner))) or (not inner and not isinstance(held, float)):
            raise ValueError(f"{self.name} has no setting {name!r} to search")


def train(
    algorithm: Algorithm,
    make_model: MakeModel,
    classes: int,
    domains: Sequence[Samples],
    others: Sequence[Samples],
    course: Course,
    seed: int,
) -> list[Check]:
    """Train once and return the looks. With averaging there is one, at the averaged weights. Nothing of the seed's
    draws depends on the algorithm, so that two of them can be compared pair by pair; torch's own generators are seeded
    within and left as they were."""
    device = torch.device(course.device)
    numbers = {each.name: each.split(course.holdout, seed) for each in domains}
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=range(torch.cuda.device_count())))
        stack.enter_context(torch.enable_grad())
        torch.manual_seed(seed)
        model = make_model(classes).to(device).train()
        look = Look(model, domains, others, numbers, course, device)
        decay, rate = algorithm.weight_decay, algorithm.learning_rate
        free, fused = [p for p in model.parameters() if p.requires_grad], device.type in ("cpu", "cuda")
        optimizer = torch.optim.Adam(free, rate, weight_decay=decay, fused=fused)
        penalty = algorithm.penalty
        attached = stack.enter_context(penalty.attach(model, algorithm.layer)) if penalty is not None else None
        averager = algorithm.averaging(model) if algorithm.averaging is not None else None
        mixing, colours = stream(seed, "mixup"), stream(seed, "augmentation")
        checks: list[Check] = []
        for step, batches in enumerate(_batches(domains, numbers, course, seed), 1):
            parts = [moved(_changed(batch, course, colours), device) for batch in batches]
            with autocast(course, device):
                loss = _loss(algorithm, model, parts, mixing)
                if not bool(loss.isfinite()):
                    return [*checks, look.diverged(step)]
                loss = attached(loss) if attached is not None else loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if averager is not None:
                averager.update()
            if step % course.check_every == 0 or step == course.steps:
                if averager is None:
                    checks.append(look(step))
                elif math.isnan(risk := look.validation()[1]):
                    return [look.diverged(step)]
                elif averager.check(risk):
                    break
        if averager is not None:
            look.model = averager.averaged()
            _fresh_statistics(look.model, (joined(each) for each in _batches(domains, numbers, course, seed)), device)
            checks = [look(step)]
    return checks


def _loss(algorithm: Algorithm, model: nn.Module, parts: Sequence[Batch], mixing: torch.Generator) -> Tensor:
    if algorithm.objective is not None:
        return algorithm.objective(model, parts)
    inputs, labels = joined(parts)
    if algorithm.mixup is None:
        return cross_entropy(logits_of(model, inputs), labels)
    mixed = algorithm.mixup(inputs, labels, generator=mixing)
    loss: Tensor = mixed.loss(logits_of(model, mixed.inputs))
    return loss


def _batches(
    domains: Sequence[Samples], numbers: Mapping[str, tuple[Tensor, Tensor]], course: Course, seed: int
) -> Iterator[tuple[Batch, ...]]:
    """One batch per domain and step."""
    streams = [
        each.batches(
            endless(numbers[each.name][0], course.batch, course.steps, stream(seed, f"order {each.name}")),
            course.workers,
        )
        for each in domains
    ]
    return zip(*streams, strict=True)


def _changed(batch: Batch, course: Course, generator: torch.Generator) -> Batch:
    return batch if course.augment is None else (course.augment(batch[0], generator=generator), batch[1])


def _fresh_statistics(model: nn.Module, batches: Iterator[Batch], device: torch.device) -> None:
    """The running statistics of averaged weights, over fifty batches, where batch normalisation keeps any."""
    norms = [each for each in model.modules() if isinstance(each, nn.modules.batchnorm._BatchNorm)]
    if not any(each.training and each.track_running_stats for each in norms):
        return
    for each in norms:
        if each.training:
            each.reset_running_stats()
    with torch.no_grad():
        for batch in itertools.islice(batches, 50):
            logits_of(model, moved(batch, device)[0])
