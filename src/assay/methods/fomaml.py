"""FOMAML and MAML on any ``nn.Module``, with the train-validation split as a setting of its own.

The inner loop adapts a copy of the weights to a task's support samples; the outer loop moves the weights along the
gradient of the query loss at the adapted copy. Without a split both loops see the same samples, and a network that can
memorise them in the inner loop shows the outer loop nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from assay._reports import RowReport, curves, lines

from ._checks import check_fields, limits
from ._progress import progress
from .inner_loop import InnerLoop, Parameters
from .meta_tasks import Loss, Task, TaskSampler, draw_tasks, finite, mean, split_task


@dataclass(frozen=True)
class OuterStep:
    """What one outer step saw, averaged over its tasks: the query loss after and before adaptation, the norm of the
    averaged gradient (before clipping) over what the optimiser owns."""

    step: int
    loss: float
    loss_before: float
    gradient_norm: float


@dataclass(frozen=True, repr=False)
class MetaTraining(RowReport):
    """The outer steps of a training, one after the other."""

    def headline(self) -> str:
        if not self.rows:
            return "no outer step was taken"
        late = self.rows[-max(1, len(self.rows) // 10) :]
        after, before = mean(row.loss for row in late), mean(row.loss_before for row in late)
        return f"{len(self)} outer steps; in the last tenth adapting takes the loss from {before:.4g} to {after:.4g}"

    def __repr__(self) -> str:
        ends = sorted({0, len(self) // 2, len(self) - 1}) if self.rows else []
        return f"{self.headline()}\n{lines([self.table()[place] for place in ends])}"

    def figure(self) -> Any:
        """The query loss before and after adaptation over the outer steps."""
        stride = max(1, len(self) // 400)
        rows = [
            {"step": row.step, "loss": value, "when": when}
            for row in self.rows[::stride]
            for when, value in (("before adapting", row.loss_before), ("after", row.loss))
        ]
        return curves(rows, "step", "loss", "when", step="outer step", loss="query loss", when="")


@dataclass(frozen=True)
class Fomaml:
    """The method's hyper-parameters. ``inner_lr`` None is ten times the optimiser's rate.

    ``split`` is ``train-val`` or ``train-train``; without a split, ``tt_samples`` says whether both loops use ``all``
    samples or only the ``support`` half (equal inner sets). ``order`` ``second`` differentiates through the inner
    steps. ``inner_params``, ``statistics`` and ``proximal`` are those of the inner loop.
    """

    inner_lr: float | None = None
    inner_steps: int = 5
    split: Literal["train-val", "train-train"] = "train-val"
    val_fraction: float = field(default=0.5, metadata=limits(above=0, below=1))
    stratify: bool = True
    tasks_per_step: int = field(default=4, metadata=limits(least=1))
    inner_params: tuple[str, ...] | None = None
    order: Literal["first", "second"] = "first"
    tt_samples: Literal["all", "support"] = "all"
    statistics: Literal["batch", "frozen"] = "batch"
    proximal: float = 0.0
    clip: float | None = field(default=None, metadata=limits(above=0, infinite=True))

    def __post_init__(self) -> None:
        rate = 0.0 if self.inner_lr is None else self.inner_lr
        InnerLoop(rate, self.inner_steps, self.inner_params, self.statistics, self.proximal)
        check_fields(self)

    def inner(self, optimizer: torch.optim.Optimizer | None = None) -> InnerLoop:
        """The inner loop; its rate comes from the optimiser where none was given."""
        rate = self.inner_lr
        if rate is None:
            if optimizer is None:
                raise ValueError("inner_lr was left to the optimiser's rate: give inner_lr, or the optimiser")
            rate = 10 * float(optimizer.param_groups[0]["lr"])
        return InnerLoop(rate, self.inner_steps, self.inner_params, self.statistics, self.proximal)

    def parts(self, task: Task, generator: torch.Generator) -> tuple[Task, Task]:
        """The samples of the inner and of the outer loop."""
        if self.split == "train-train" and self.tt_samples == "all":
            return task, task
        support, query = split_task(task, val_fraction=self.val_fraction, stratify=self.stratify, generator=generator)
        return (support, query) if self.split == "train-val" else (support, support)

    def meta_gradient(
        self, model: nn.Module, inside: Task, outside: Task, loss_fn: Loss, inner: InnerLoop
    ) -> tuple[Parameters, torch.Tensor]:
        """The gradient of one task for every trainable parameter, and the outer loss after adaptation."""
        second = self.order == "second"
        start = inner.trainable(model)
        with _twice_differentiable() if second else nullcontext(), inner.modes(model), torch.enable_grad():
            adapted = inner.adapt(model, inside, loss_fn, create_graph=second)
            if second:
                value, _ = inner.loss(model, adapted, outside, loss_fn)
                slopes = torch.autograd.grad(value, list(start.values()), materialize_grads=True)
            else:
                value, slopes = inner.slopes(model, adapted, outside, loss_fn, list(start))
        return dict(zip(start, slopes, strict=True)), value.detach()

    def step(
        self,
        model: nn.Module,
        tasks: Sequence[Task],
        loss_fn: Loss,
        optimizer: torch.optim.Optimizer,
        *,
        generator: torch.Generator,
        step: int = 0,
    ) -> OuterStep:
        """One outer step on these tasks: gradients are averaged into ``.grad``, clipped if asked, and applied. Clipping
        and the reported norm are over the parameters that the optimiser owns; the others get this step's ``.grad`` too,
        unclipped, for whoever moves them."""
        if not tasks:
            raise ValueError("an outer step needs at least one task")
        inner = self.inner(optimizer)
        start = inner.trainable(model)
        known = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        owned = [parameter for parameter in start.values() if id(parameter) in known]
        if not owned:
            raise ValueError("the optimiser owns none of the model's trainable parameters")
        optimizer.zero_grad()
        for parameter in start.values():
            parameter.grad = None
        after, before = [], []
        for task in tasks:
            inside, outside = self.parts(task, generator)
            with torch.no_grad(), inner.modes(model):
                before.append(finite(inner.loss(model, dict(start), outside, loss_fn)[0], step))
            slopes, value = self.meta_gradient(model, inside, outside, loss_fn, inner)
            after.append(finite(value, step))
            for name, parameter in start.items():
                part = slopes[name].detach() / len(tasks)
                parameter.grad = part if parameter.grad is None else parameter.grad + part
        norm = nn.utils.clip_grad_norm_(owned, self.clip if self.clip is not None else float("inf"))
        optimizer.step()
        return OuterStep(step, mean(after), mean(before), float(norm))

    def train(
        self,
        model: nn.Module,
        task_sampler: TaskSampler | Sequence[Task],
        loss_fn: Loss,
        optimizer: torch.optim.Optimizer,
        *,
        steps: int,
        seed: int,
    ) -> Iterator[OuterStep]:
        """``steps`` outer steps on tasks from the sampler (a function of a generator, or a list); yields each. The
        same seed draws the same tasks whatever the split."""
        sampling, splitting = (torch.Generator().manual_seed(2 * seed + place) for place in (0, 1))
        for step in range(steps):
            tasks = draw_tasks(task_sampler, self.tasks_per_step, sampling)
            yield self.step(model, tasks, loss_fn, optimizer, generator=splitting, step=step)


@contextmanager
def _twice_differentiable() -> Iterator[None]:
    """Neither fused attention nor what a compiler made of a model has a second derivative: plain forms have."""
    with sdpa_kernel(SDPBackend.MATH), torch.compiler.set_stance("force_eager"):
        yield


def fomaml(
    model: nn.Module,
    task_sampler: TaskSampler | Sequence[Task],
    loss_fn: Loss,
    outer_opt: torch.optim.Optimizer,
    *,
    steps: int,
    seed: int,
    show: bool | None = None,
    **hyper_parameters: Any,
) -> MetaTraining:
    """Train ``model`` in place; ``hyper_parameters`` are the fields of :class:`Fomaml`."""
    method = Fomaml(**hyper_parameters)
    done = method.train(model, task_sampler, loss_fn, outer_opt, steps=steps, seed=seed)
    return MetaTraining(tuple(step for _, step in zip(progress(range(steps), "outer step", show), done, strict=True)))
