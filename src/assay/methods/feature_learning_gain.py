"""What does a model gain by learning features? Full training beside its linearisation and its head alone, each at its
own best learning rate, over seeds."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from assay._reports import Report, chart
from assay.probes.intervals import Interval, mean_interval
from assay.training.seeds import stream

from ._checks import number, whole
from ._data import rows_of, whole_set
from ._models import answer, device_of, evaluating
from ._progress import progress
from ._training import own_training
from .fixed_features import frozen_backbone, linearized

Data = tuple[Any, Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]
Build = Callable[[], nn.Module]


@dataclass(frozen=True)
class ArmResult:
    """One way of training, at the learning rate that did best on the validation data."""

    accuracies: tuple[float, ...]  # on the test data, by seed
    learning_rate: float
    validation: Mapping[float, float]  # mean validation accuracy by learning rate; NaN where training diverged

    @property
    def accuracy(self) -> float:
        """The mean over seeds."""
        return sum(self.accuracies) / len(self.accuracies)

    @property
    def at_edge(self) -> bool:
        """Whether the best rate is the smallest or largest tried, so that a wider grid may change the result."""
        return self.learning_rate in (min(self.validation), max(self.validation))


@dataclass(frozen=True, repr=False)
class FeatureLearningGain(Report):
    """Full training beside its two comparators, each at its own best rate. ``gain`` near zero means that fixed features
    would have done."""

    full: ArmResult
    linearized: ArmResult
    frozen: ArmResult
    majority: float  # test accuracy of the best constant answer
    steps: int

    @property
    def better(self) -> ArmResult:
        """The comparator with the higher mean accuracy."""
        return max(self.linearized, self.frozen, key=lambda arm: arm.accuracy)

    @property
    def gain(self) -> float:
        """Test accuracy of full training minus that of the better comparator."""
        return self.full.accuracy - self.better.accuracy

    def interval(self) -> Interval:
        """The gain with its interval over seeds, paired; without one below three seeds."""
        pairs = zip(self.full.accuracies, self.better.accuracies, strict=True)
        return mean_interval(ours - theirs for ours, theirs in pairs)

    @property
    def advice(self) -> str:
        """``learns features`` or ``fixed features do`` where the interval decides, else ``undecided``."""
        return {1: "learns features", -1: "fixed features do"}.get(self.interval().sign, "undecided")

    def arms(self) -> dict[str, ArmResult]:
        """All three, by name."""
        return {"full": self.full, "linearized": self.linearized, "frozen": self.frozen}

    def headline(self) -> str:
        seeds, found = len(self.full.accuracies), self.interval()
        within = f" [{found.low:+.3f}, {found.high:+.3f}]" if math.isfinite(found.low) else ""
        lines = [f"gain of feature learning {self.gain:+.3f}{within} over {seeds} seeds: {self.advice}"]
        if edges := [name for name, arm in self.arms().items() if arm.at_edge]:
            lines.append(f"the best rate of {', '.join(edges)} is the smallest or largest tried: widen learning_rates")
        return "\n".join(lines)

    def table(self) -> list[dict[str, Any]]:
        """A row per way of training."""
        rows = []
        for name, arm in self.arms().items():
            found = mean_interval(arm.accuracies)
            ends = {"low": found.low, "high": min(found.high, 1.0)} if math.isfinite(found.low) else {}
            rows.append({"arm": name, "accuracy": arm.accuracy, "rate": arm.learning_rate, "edge": arm.at_edge, **ends})
        return rows

    def figure(self) -> Any:
        """Test accuracy of the three, every seed a point, the mean a bar and the best constant answer a line."""
        names = {"full": "all weights", "linearized": "linearised", "frozen": "head alone"}
        rows = [
            {"arm": names[name], "accuracy": accuracy}
            for name, arm in self.arms().items()
            for accuracy in arm.accuracies
        ]
        base = chart(rows, "the figure of a gain")
        order = {"sort": list(names.values()), "title": None}
        bars = base.mark_bar(opacity=0.35, size=26).encode(
            y={"field": "arm", "type": "nominal", **order},
            x={"aggregate": "mean", "field": "accuracy", "type": "quantitative", "title": "test accuracy"},
        )
        points = base.mark_point(filled=True, size=45).encode(
            y={"field": "arm", "type": "nominal", **order}, x={"field": "accuracy", "type": "quantitative"}
        )
        line = chart([{"accuracy": self.majority}]).mark_rule(strokeDash=[4, 4]).encode(x="accuracy:Q")
        return (bars + points + line).properties(width=360, height=130, title=f"Accuracy after {self.steps} steps")


def feature_learning_gain(
    model: nn.Module,
    train: Any,
    validation: Any,
    test: Any,
    *,
    head: str,
    generator: torch.Generator | None = None,
    seeds: int = 1,
    steps: int = 300,
    batch_size: int = 64,
    learning_rates: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1),
    loss: Loss = cross_entropy,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
    show: bool | None = None,
) -> FeatureLearningGain:
    """Train the model, its linearisation and its head alone: same start, batches, steps and grid of learning rates.

    Data are (inputs, class labels), mappings with labels, or data loaders of either; the model maps inputs to class
    scores. The rate is chosen on ``validation`` by accuracy, averaged over seeds (the smaller one among equals), and
    the chosen networks are scored once on ``test``. A seed is an order of batches, drawn from ``generator`` where one
    is given; three seeds or more give an interval. A network that answers anything but numbers has diverged.
    """
    device = device_of(model)
    given = {"train": train, "validation": validation, "test": test}
    data = {name: whole_set(part, name, device) for name, part in given.items()}
    count = len(data["train"][1])
    whole("steps", steps, 1)
    whole("seeds", seeds, 1)
    whole("batch_size", batch_size, 1, count)
    number("the smallest of learning_rates", min(learning_rates, default=0), above=0)
    draws = [generator or stream(seed, "batches") for seed in range(seeds)]
    batches = [[torch.randint(count, (batch_size,), generator=draw) for _ in range(steps)] for draw in draws]
    builds: dict[str, Build] = {
        "full": lambda: copy.deepcopy(model),
        "linearized": lambda: linearized(model),
        "frozen": lambda: frozen_backbone(model, head),
    }
    plan = [(name, rate) for name in builds for rate in sorted(learning_rates)]
    scores: dict[str, dict[float, list[tuple[float, float]]]] = {name: {} for name in builds}
    for name, rate in progress(plan, "way of training and rate", show):
        scores[name][rate] = []
        for seed in range(seeds):
            with own_training(seed, "gain", model):
                network = builds[name]().train()
                rule = optimizer([p for p in network.parameters() if p.requires_grad], lr=rate)
                fitted = _fit(network, rule, data["train"], batches[seed], loss)
                scores[name][rate].append(
                    (_accuracy(network, data["validation"]), _accuracy(network, data["test"]))
                    if fitted
                    else (math.nan, math.nan)
                )
    majority = int(torch.unique(data["test"][1], return_counts=True)[1].max()) / len(data["test"][1])
    arms = {name: _best(found) for name, found in scores.items()}
    return FeatureLearningGain(**arms, majority=majority, steps=steps)


def _best(scores: Mapping[float, list[tuple[float, float]]]) -> ArmResult:
    """The rate with the best mean validation accuracy, and the test accuracies that belong to it."""
    validation = {rate: sum(one for one, _ in found) / len(found) for rate, found in scores.items()}
    known = {rate: mean for rate, mean in validation.items() if not math.isnan(mean)}
    if not known:
        raise ValueError(f"training diverged at every learning rate of {sorted(scores)}: try smaller ones")
    rate = max(known, key=lambda each: (known[each], -each))
    return ArmResult(tuple(other for _, other in scores[rate]), rate, validation)


def _fit(
    network: nn.Module, optimizer: torch.optim.Optimizer, data: Data, batches: Sequence[Tensor], loss: Loss
) -> bool:
    """Whether the loss and the weights stayed finite."""
    for batch in batches:
        optimizer.zero_grad()
        value = loss(answer(network, rows_of(data[0], batch)), data[1][batch.to(data[1].device)])
        if not bool(value.isfinite()):
            return False
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return all(bool(weight.isfinite().all()) for weight in network.parameters() if weight.requires_grad)


@torch.no_grad()
def _accuracy(network: nn.Module, data: Data) -> float:
    """The share of samples whose class has the largest score; NaN where some score is."""
    right, unknown = 0, False
    with evaluating(network):
        for start in range(0, len(data[1]), 512):
            rows = slice(start, start + 512)
            scores = answer(network, rows_of(data[0], rows))
            unknown |= bool(scores.isnan().any())
            right += int((scores.argmax(dim=1) == data[1][rows]).sum())
    return math.nan if unknown else right / len(data[1])
