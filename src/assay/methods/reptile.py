"""Reptile on the same tasks as FOMAML: adapt to a task, then move a share of the way towards the adapted weights.

It has no outer loss, so it needs no split; every sample of a task is used in the inner loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from ._checks import check_fields, limits
from .inner_loop import InnerLoop
from .meta_tasks import Loss, Task, TaskSampler, draw_tasks, finite, mean


@dataclass(frozen=True)
class ReptileStep:
    """The loss on the tasks' samples after and before adaptation, averaged, and how far the weights went."""

    step: int
    loss: float
    loss_before: float
    moved: float


@dataclass(frozen=True)
class Reptile:
    """W ← W + ε·mean_k(W̃_k − W). ``proximal`` λ > 0 gives the inner loop of Meta-MiniBatchProx."""

    inner_lr: float
    inner_steps: int = 5
    epsilon: float = field(default=0.1, metadata=limits(above=0, most=1))
    tasks_per_step: int = field(default=4, metadata=limits(least=1))
    inner_params: tuple[str, ...] | None = None
    statistics: Literal["batch", "frozen"] = "batch"
    proximal: float = 0.0

    def __post_init__(self) -> None:
        self.inner()
        check_fields(self)

    def inner(self) -> InnerLoop:
        """The loop that adapts to one task; also of use alone, to adapt the trained model to a new task."""
        return InnerLoop(self.inner_lr, self.inner_steps, self.inner_params, self.statistics, self.proximal)

    def step(self, model: nn.Module, tasks: Sequence[Task], loss_fn: Loss, *, step: int = 0) -> ReptileStep:
        """One outer step: adapt to each task from the same weights, then move the model in place by ``epsilon`` times
        the mean of the ways. No optimiser takes part, and no ``.grad`` is written."""
        if not tasks:
            raise ValueError("an outer step needs at least one task")
        inner = self.inner()
        start = inner.trainable(model)
        moves: dict[str, Tensor] = {name: torch.zeros_like(parameter) for name, parameter in start.items()}
        after, before = [], []
        for task in tasks:
            adapted = inner.adapt(model, task, loss_fn)
            with torch.no_grad(), inner.modes(model):
                before.append(finite(inner.loss(model, dict(start), task, loss_fn)[0], step))
                after.append(finite(inner.loss(model, adapted, task, loss_fn)[0], step))
            for name, parameter in start.items():
                moves[name] += (adapted[name].detach() - parameter.detach()) / len(tasks)
        with torch.no_grad():
            for name, parameter in start.items():
                parameter.add_(moves[name], alpha=self.epsilon)
        moved = float(torch.stack([(self.epsilon * move).norm() for move in moves.values()]).norm())
        return ReptileStep(step, mean(after), mean(before), moved)

    def train(
        self, model: nn.Module, task_sampler: TaskSampler | Sequence[Task], loss_fn: Loss, *, steps: int, seed: int
    ) -> Iterator[ReptileStep]:
        """Tasks come in the same order as in FOMAML with this seed."""
        generator = torch.Generator().manual_seed(2 * seed)
        for step in range(steps):
            yield self.step(model, draw_tasks(task_sampler, self.tasks_per_step, generator), loss_fn, step=step)
