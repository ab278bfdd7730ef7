"""The nuclear-norm penalty's share of a training step at 96 rows of 2,048 features, by both solvers."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from assay._extras import needs
from assay.evaluation.measure import timed
from assay.lab.errors import UserError
from assay.methods.nuclear_norm import NuclearNorm, Solver

SOLVERS: tuple[Solver, ...] = ("svd", "gram")


@dataclass(frozen=True)
class Plan:
    """What is measured: rows of a batch, width of the features, side of the images for the large network."""

    rows: int = 96
    dim: int = 2048
    side: int = 224
    repeats: int = 9


GPU, CPU = Plan(repeats=25), Plan(side=64, repeats=5)


def run(device: str) -> dict[str, Any]:
    """Steps without a penalty, steps with it and the penalty alone take turns; ratios are medians over the turns. The
    penalty alone is the steadier measure where it is small; on a GPU the whole step also shows what waiting costs."""
    plan = GPU if device == "cuda" else CPU
    rows = [row for name, make in _NETWORKS.items() for row in _rows(name, make, plan, device)]
    return {"rows of features": plan.rows, "features": plan.dim, "rows": rows}


def perceptron(plan: Plan) -> tuple[nn.Module, tuple[int, ...]]:
    """Two linear layers: hardly any work beside the penalty."""
    return nn.Sequential(nn.Linear(784, plan.dim), nn.ReLU(), nn.Linear(plan.dim, 10)), (784,)


def resnet(plan: Plan) -> tuple[nn.Module, tuple[int, ...]]:
    """ResNet-50, whose pooled features are 2,048 wide, with random weights."""
    try:
        from transformers import ResNetConfig, ResNetForImageClassification
    except ImportError:
        raise UserError(needs("the benchmark nuclear_norm", "llm")) from None
    widths = [plan.dim // 8, plan.dim // 4, plan.dim // 2, plan.dim]
    return ResNetForImageClassification(ResNetConfig(hidden_sizes=widths, num_labels=10)), (3, plan.side, plan.side)


_NETWORKS: dict[str, Callable[[Plan], tuple[nn.Module, tuple[int, ...]]]] = {
    "two layers": perceptron,
    "ResNet-50": resnet,
}


class Step:
    """A training step on one batch, with a penalty or without."""

    def __init__(self, model: nn.Module, inputs: Tensor, labels: Tensor, penalty: NuclearNorm | None) -> None:
        self.model, self.inputs, self.labels, self.penalty = model, inputs, labels, penalty
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)

    def __call__(self) -> None:
        half = self.inputs.device.type == "cuda"
        attached = self.penalty.attach(self.model) if self.penalty else None
        with torch.autocast(self.inputs.device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            output = self.model(self.inputs)
            loss = cross_entropy(getattr(output, "logits", output), self.labels)
            loss = attached(loss) if attached else loss
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        if attached:
            attached.remove()


class Alone:
    """The penalty of one batch's features, there and back."""

    def __init__(self, penalty: NuclearNorm, features: Tensor) -> None:
        self.penalty, self.features = penalty, features

    def __call__(self) -> None:
        torch.autograd.grad(self.penalty.value(self.features), self.features)


def _rows(
    name: str, make: Callable[[Plan], tuple[nn.Module, tuple[int, ...]]], plan: Plan, device: str
) -> list[dict[str, Any]]:
    torch.manual_seed(0)
    model, shape = make(plan)
    model = model.to(device).train()
    inputs = torch.randn(plan.rows, *shape, device=device)
    labels = torch.arange(plan.rows, device=device) % 10
    features = torch.relu(torch.randn(plan.rows, plan.dim, device=device)).requires_grad_()
    work: dict[str, Callable[[], None]] = {"plain": Step(model, inputs, labels, None)}
    for solver in SOLVERS:
        penalty = NuclearNorm(warmup=0, solver=solver, every=0)
        work |= {solver: Step(model, inputs, labels, penalty), f"{solver} alone": Alone(penalty, features)}
    times: dict[str, list[float]] = {each: [] for each in work}
    for turn in range(plan.repeats + 1):  # the first turn warms up
        print(f"assay: {name}, turn {turn} of {plan.repeats}", file=sys.stderr)
        for each, piece in work.items():
            seconds = timed(piece, device).seconds
            if turn:
                times[each].append(seconds)
    return [_row(name, solver, shape, times, device) for solver in SOLVERS]


def _row(name: str, solver: str, shape: tuple[int, ...], times: dict[str, list[float]], device: str) -> dict[str, Any]:
    alone, whole = (
        [one / plain for one, plain in zip(times[side], times["plain"], strict=True)]
        for side in (f"{solver} alone", solver)
    )
    ratio = statistics.median(alone)
    row: dict[str, Any] = {
        "network": name,
        "input": list(shape),
        "solver": solver,
        "penalty / step": round(ratio, 4),
        "range": [round(min(alone), 4), round(max(alone), 4)],
        "share of the step": round(ratio / (1 + ratio), 4),
        "step with / without": round(statistics.median(whole), 3),
    }
    if device == "cuda":
        row["ms without"] = round(1000 * statistics.median(times["plain"]), 2)
        row["ms of the penalty"] = round(1000 * statistics.median(times[f"{solver} alone"]), 2)
    return row
