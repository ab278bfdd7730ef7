"""Split audit: does your meta-learner memorise in its inner loop, and does a train-validation split cure it?

Trains the same model twice from the same weights on the same tasks, with and without a split, and measures both on new
tasks. The signature of memorisation needs no knowledge of true features: the margin gained by adaptation on the very
samples that were adapted to, minus the gain on held-out samples of the same task, while the training loss is near zero.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from ._checks import check_fields, limits, seed_list
from ._progress import progress
from .audit_report import AuditReport, AuditRow
from .fomaml import Fomaml
from .inner_loop import InnerLoop, Parameters
from .meta_tasks import Loss, Task, TaskSampler, draw_tasks, margins, mean, split_task

MakeModel = Callable[[], nn.Module]
MakeOptimizer = Callable[[nn.Module], torch.optim.Optimizer]


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
        seed: int | None = None,
        seeds: int | Sequence[int] | None = None,
        show: bool | None = None,
    ) -> AuditReport:
        """``make_model`` builds the untrained model (torch is seeded around it). Test tasks are split as the method
        splits: support to adapt to, the rest held out. ``seeds``, a number of them or integers, trains both ways anew
        for each; three or more give intervals over seeds."""
        chosen = seed_list(seeds, seed)
        given = (make_model, make_optimizer, training, testing, loss_fn)
        return AuditReport.over([self._pair(each, *given, show) for each in chosen])

    def _pair(
        self,
        seed: int,
        make_model: MakeModel,
        make_optimizer: MakeOptimizer,
        training: TaskSampler | Sequence[Task],
        testing: TaskSampler | Sequence[Task],
        loss_fn: Loss,
        show: bool | None,
    ) -> tuple[AuditRow, AuditRow]:
        """With a split and without, of one seed."""
        rows: list[AuditRow] = []
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
            told = progress(range(self.steps), f"seed {seed}, {split}: outer step", show)
            losses = [found.loss for _, found in zip(told, done, strict=True)]
            generator = torch.Generator().manual_seed(2 * seed + 1_000_001)
            tasks = draw_tasks(testing, self.test_tasks, generator)
            late = losses[-max(1, len(losses) // 10) :]
            rows.append(self._measure(split, model, tasks, loss_fn, method.inner(optimizer), mean(late), generator))
        return rows[0], rows[1]

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
        found: defaultdict[str, list[float]] = defaultdict(list)
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
                share = (margins(state[1], held_out.labels) > 0).float().mean()
                found[f"{name}_accuracy"].append(float(share))
        gains = zip(found["support_gain"], found["held_out_gain"], strict=True)
        numbers = {name: mean(values) for name, values in found.items()}
        apart = tuple(support - held_out for support, held_out in gains)
        right = tuple(found["adapted_accuracy"])
        if not all(math.isfinite(value) for value in (*apart, *numbers.values())):
            raise ValueError(f"answers on new tasks are not finite after training ({split}): lower the learning rates")
        return AuditRow(split, train_loss, amplifications=apart, adapted_accuracies=right, **numbers)


def _equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())
