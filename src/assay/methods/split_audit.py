"""Split audit: does your meta-learner memorise in its inner loop, and does a train-validation split cure it?

Trains the same model twice from the same weights on the same tasks, with and without a split, and measures both on new
tasks. The signature of memorisation needs no knowledge of true features: the margin gained by adaptation on the very
samples that were adapted to, minus the gain on held-out samples of the same task, while the training loss is near zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from assay._reports import Report, bars
from assay.probes.intervals import Interval, mean_interval

from ._checks import check_fields, limits
from ._progress import progress
from .fomaml import Fomaml
from .meta_tasks import InnerLoop, Loss, Parameters, Task, TaskSampler, draw_tasks, margins, mean, split_task

MEASURED = (
    "meta_train_loss",
    "test_loss",
    "test_accuracy",
    "adapted_loss",
    "adapted_accuracy",
    "support_gain",
    "held_out_gain",
    "amplification",
)
MakeModel = Callable[[], nn.Module]
MakeOptimizer = Callable[[nn.Module], torch.optim.Optimizer]


@dataclass(frozen=True)
class AuditRow:
    """One way of training, measured on new tasks. ``support_gain`` and ``held_out_gain`` are mean margin gains from the
    inner steps; ``amplifications`` are their differences, task by task, and ``amplification`` is the mean of these."""

    split: str
    meta_train_loss: float
    test_loss: float
    test_accuracy: float
    adapted_loss: float
    adapted_accuracy: float
    support_gain: float
    held_out_gain: float
    amplifications: tuple[float, ...]

    @property
    def amplification(self) -> float:
        return mean(self.amplifications)


@dataclass(frozen=True, repr=False)
class AuditReport(Report):
    """``near_zero`` is the meta-training loss below which a method counts as fitted, ``tie`` the difference in accuracy
    that is none."""

    with_split: AuditRow
    without_split: AuditRow
    near_zero: float = 0.1
    tie: float = 0.02

    @property
    def apart(self) -> Interval:
        """By how much more the inner steps gain on what they adapted to without a split, with its interval over the new
        tasks, which are the same for both."""
        pairs = zip(self.without_split.amplifications, self.with_split.amplifications, strict=True)
        return mean_interval(theirs - ours for theirs, ours in pairs)

    @property
    def memorises(self) -> bool:
        """Without a split the training loss is near zero, the inner steps gain more on what they adapted to than with
        one (by two standard errors over the tasks, which are the same), and new tasks are served worse."""
        ours, theirs = self.with_split, self.without_split
        apart = torch.tensor(theirs.amplifications) - torch.tensor(ours.amplifications)
        return (
            theirs.meta_train_loss < self.near_zero
            and float(apart.mean()) > 2 * float(apart.std()) / len(apart) ** 0.5
            and ours.adapted_accuracy - theirs.adapted_accuracy > self.tie
        )

    @property
    def advice(self) -> str:
        """``memorises``; ``does not`` where new tasks are served no worse without a split; ``undecided`` where they
        are, but the loss is not near zero yet or the tasks do not tell the gains apart."""
        if self.memorises:
            return "memorises"
        worse = self.with_split.adapted_accuracy - self.without_split.adapted_accuracy > self.tie
        return "undecided" if worse else "does not"

    def headline(self) -> str:
        return f"without a split the inner loop {self.advice}; amplification apart by {self.apart}"

    def table(self) -> list[dict[str, Any]]:
        """A row per quantity, with a split and without."""
        return [
            {
                "what": name.replace("_", " "),
                "with split": getattr(self.with_split, name),
                "without": getattr(self.without_split, name),
            }
            for name in MEASURED
        ]

    def figure(self) -> Any:
        """Margin gains by adaptation on the samples adapted to and on held-out ones, and accuracy on new tasks."""
        ways = {"with split": self.with_split, "without": self.without_split}
        gains = [
            {"samples": samples, "gain": getattr(row, name), "training": way}
            for way, row in ways.items()
            for name, samples in (("support_gain", "adapted to"), ("held_out_gain", "held out"))
        ]
        accuracy = [
            {"when": when, "accuracy": getattr(row, name), "training": way}
            for way, row in ways.items()
            for name, when in (("test_accuracy", "before adapting"), ("adapted_accuracy", "after"))
        ]
        left = bars(gains, "samples", "gain", "training", gain="gain in margin by adapting").properties(width=230)
        right = bars(accuracy, "when", "accuracy", "training", accuracy="accuracy on new tasks").properties(width=230)
        return left | right


@dataclass(frozen=True)
class SplitAudit:
    """``method`` is the FOMAML you use (its split is set by the audit); ``steps`` outer steps each, so that both ways
    get the same number of outer gradients; ``test_tasks`` new tasks to measure on."""

    method: Fomaml
    steps: int = field(default=200, metadata=limits(least=1))
    test_tasks: int = field(default=20, metadata=limits(least=2))  # one alone has no standard error

    def __post_init__(self) -> None:
        check_fields(self)

    def run(
        self,
        make_model: MakeModel,
        make_optimizer: MakeOptimizer,
        training: TaskSampler | Sequence[Task],
        testing: TaskSampler | Sequence[Task],
        loss_fn: Loss,
        *,
        seed: int,
        show: bool | None = None,
    ) -> AuditReport:
        """``make_model`` builds the untrained model (torch is seeded around it). Test tasks are split as the method
        splits: support to adapt to, the rest held out."""
        rows: dict[str, AuditRow] = {}
        start: dict[str, torch.Tensor] = {}
        for split in ("train-val", "train-train"):
            method = replace(self.method, split=split)
            with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
                torch.manual_seed(seed)
                model = make_model()
            now = {name: value.detach().clone() for name, value in model.state_dict().items()}
            if rows and not _equal(start, now):
                raise ValueError("make_model must build the same untrained model anew at every call")
            start = now
            optimizer = make_optimizer(model)
            done = method.train(model, training, loss_fn, optimizer, steps=self.steps, seed=seed)
            told = progress(range(self.steps), f"{split}: outer step", show)
            losses = [found.loss for _, found in zip(told, done, strict=True)]
            generator = torch.Generator().manual_seed(2 * seed + 1_000_001)
            tasks = draw_tasks(testing, self.test_tasks, generator)
            late = losses[-max(1, len(losses) // 10) :]
            rows[split] = self._measure(split, model, tasks, loss_fn, method.inner(optimizer), mean(late), generator)
        return AuditReport(rows["train-val"], rows["train-train"])

    def _measure(
        self,
        split: str,
        model: nn.Module,
        tasks: Sequence[Task],
        loss_fn: Loss,
        inner: InnerLoop,
        train_loss: float,
        generator: torch.Generator,
    ) -> AuditRow:
        found: dict[str, list[float]] = {name: [] for name in AuditRow.__dataclass_fields__}
        fraction, stratify = self.method.val_fraction, self.method.stratify
        for task in tasks:
            support, held_out = split_task(task, val_fraction=fraction, stratify=stratify, generator=generator)
            start: Parameters = dict(inner.trainable(model))
            adapted = inner.adapt(model, support, loss_fn)
            states = {}
            for name, samples in (("support_gain", support), ("held_out_gain", held_out)):
                with torch.no_grad(), inner.modes(model):
                    before = inner.loss(model, start, samples, loss_fn)
                    after = inner.loss(model, adapted, samples, loss_fn)
                gain = margins(after[1], samples.labels) - margins(before[1], samples.labels)
                states[name] = (before, after)
                found[name].append(float(gain.mean()))
            before, after = states["held_out_gain"]
            for name, state in (("test", before), ("adapted", after)):
                found[f"{name}_loss"].append(float(state[0]))
                right = margins(state[1], held_out.labels) > 0
                found[f"{name}_accuracy"].append(float(right.float().mean()))
        gains = zip(found["support_gain"], found["held_out_gain"], strict=True)
        numbers = {name: mean(values) for name, values in found.items() if values}
        apart = tuple(support - held_out for support, held_out in gains)
        return AuditRow(split=split, meta_train_loss=train_loss, amplifications=apart, **numbers)


def _equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())
