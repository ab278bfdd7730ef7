"""Looks at a model while it trains on some domains: on samples held out from these, and on other domains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .domain_data import Inputs, Samples, moved

EVALUATED = 256  # samples at once


@dataclass(frozen=True)
class Check:
    """A look at the model after some steps: on the held-out samples of the training domains, and on every other
    domain. A training that diverged has NaN from there on."""

    step: int
    validation: float
    validation_loss: float
    accuracies: Mapping[str, float]


@dataclass(frozen=True)
class Course:
    """How long a training is and how it is watched; ``batch`` is per domain."""

    steps: int = 5000
    batch: int = 32
    check_every: int = 300
    holdout: float = 0.2
    device: str = "cpu"
    precision: Literal["float32", "bfloat16"] = "float32"
    workers: int = 0
    augment: Callable[..., Inputs] | None = None

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("batch", 1), ("check_every", 1), ("workers", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}")
        if not 0 < self.holdout < 1:
            raise ValueError(f"holdout must lie in (0, 1), not {self.holdout!r}")
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(f"precision must be one of float32, bfloat16, not {self.precision!r}")


class Look:
    """Accuracy and loss on held-out samples, accuracy on other domains."""

    def __init__(
        self,
        model: nn.Module,
        domains: Sequence[Samples],
        others: Sequence[Samples],
        numbers: Mapping[str, tuple[Tensor, Tensor]],
        course: Course,
        device: torch.device,
    ) -> None:
        self.model, self.domains, self.others, self.numbers = model, domains, others, numbers
        self.course, self.device = course, device

    def __call__(self, step: int) -> Check:
        accuracy, loss = self.validation()
        others = {each.name: self._on([(each, torch.arange(len(each)))])[0] for each in self.others}
        return Check(step, accuracy, loss, others)

    def diverged(self, step: int) -> Check:
        """The look at a model whose loss is not finite any more."""
        return Check(step, math.nan, math.nan, {each.name: math.nan for each in self.others})

    def validation(self) -> tuple[float, float]:
        """Accuracy and mean loss on the held-out samples of all training domains together."""
        return self._on([(each, self.numbers[each.name][1]) for each in self.domains])

    def _on(self, chosen: Sequence[tuple[Samples, Tensor]]) -> tuple[float, float]:
        right, loss, count = 0, 0.0, 0
        with torch.no_grad(), _evaluating(self.model), autocast(self.course, self.device):
            for samples, numbers in chosen:
                parts = [numbers[i : i + EVALUATED] for i in range(0, len(numbers), EVALUATED)]
                for batch in samples.batches(parts, self.course.workers):
                    inputs, labels = moved(batch, self.device)
                    logits = logits_of(self.model, inputs).float()
                    if not bool(logits.isfinite().all()):
                        return math.nan, math.nan
                    right += int((logits.argmax(1) == labels).sum())
                    loss += float(cross_entropy(logits, labels, reduction="sum"))
                    count += len(labels)
        return right / count, loss / count


def logits_of(model: nn.Module, inputs: Inputs) -> Tensor:
    """What the model answers to a tensor or to a mapping; the ``logits`` of a record."""
    output = model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
    logits: Tensor = getattr(output, "logits", output)
    return logits


def autocast(course: Course, device: torch.device) -> torch.autocast:
    """The course's own precision, also inside a caller's autocast. Weights change between passes: a cache of their
    casts would go stale."""
    half = course.precision == "bfloat16"
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=half, cache_enabled=False)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for module, training in modes:
            module.training = training
