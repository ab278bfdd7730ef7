"""Tasks for meta-learning on any ``nn.Module``: what FOMAML, Reptile and the split audit share.

A task is a small labelled set. Inputs are a tensor (n, ...), or a mapping of tensors that the model takes as keyword
arguments (tokenised text); the model answers with a tensor or with an object that has ``logits``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

Inputs = Tensor | Mapping[str, Tensor]
Loss = Callable[[Any, Tensor], Tensor]
Parameters = dict[str, Tensor]
TaskSampler = Callable[[torch.Generator], "Task"]


@dataclass(frozen=True)
class Task:
    """Samples of one task. ``support`` and ``query`` are index tensors of a split that is already made; without them
    the method splits. ``inputs`` has a first axis of samples, in every tensor when it is a mapping."""

    inputs: Inputs
    labels: Tensor
    support: Tensor | None = None
    query: Tensor | None = None

    def __post_init__(self) -> None:
        lengths = {len(part) for part in _tensors(self.inputs)} | {len(self.labels)}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError("a task needs one label for every input, and at least one sample")
        if (self.support is None) != (self.query is None):
            raise ValueError("give both support and query indices, or neither")
        if self.support is not None and self.query is not None:
            both = set(self.support.tolist()) & set(self.query.tolist())
            if both:
                raise ValueError(f"{len(both)} samples are in both support and query: such a split is none")

    @staticmethod
    def from_parts(support: tuple[Inputs, Tensor], query: tuple[Inputs, Tensor]) -> Task:
        """A task whose halves come as separate sets; a query sample that equals a support sample is refused."""
        ours, theirs = _matched(support[0], query[0])
        if len(support[1]) and len(query[1]):
            same = torch.ones(len(support[1]), len(query[1]), dtype=torch.bool, device=support[1].device)
            for a, b in zip(ours, theirs, strict=True):
                same &= (a.flatten(1).unsqueeze(1) == b.flatten(1).unsqueeze(0)).all(-1)
            if bool(same.any()):
                raise ValueError(
                    f"{int(same.any(0).sum())} query samples are also in the support: such a split is none"
                )
        joined = [torch.cat([a, b]) for a, b in zip(ours, theirs, strict=True)]
        inputs: Inputs = dict(zip(support[0], joined, strict=True)) if isinstance(support[0], Mapping) else joined[0]
        count = len(support[1])
        places = torch.arange(count + len(query[1]))
        return Task(inputs, torch.cat([support[1], query[1]]), places[:count], places[count:])

    def part(self, index: Tensor) -> Task:
        """The samples at ``index``, as a task without a split."""
        chosen = index.to(self.labels.device)
        if isinstance(self.inputs, Mapping):
            return Task({name: part[chosen] for name, part in self.inputs.items()}, self.labels[chosen])
        return Task(self.inputs[chosen], self.labels[chosen])

    def __len__(self) -> int:
        return len(self.labels)


def _matched(support: Inputs, query: Inputs) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors of both sides in the same order: fields of mappings by name."""
    if isinstance(support, Mapping) and isinstance(query, Mapping):
        if set(support) != set(query):
            raise ValueError(f"support has the fields {', '.join(support)}, and query {', '.join(query)}")
        pairs = [(support[name], query[name]) for name in support]
    elif isinstance(support, Tensor) and isinstance(query, Tensor):
        pairs = [(support, query)]
    else:
        raise ValueError("support and query must both be tensors, or both mappings of tensors")
    for ours, theirs in pairs:
        if ours.shape[1:] != theirs.shape[1:]:
            raise ValueError(
                f"samples of the support have shape {tuple(ours.shape[1:])} and those of the query "
                f"{tuple(theirs.shape[1:])}: pad both to one length"
            )
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


def _tensors(inputs: Inputs) -> list[Tensor]:
    return list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]


def split_task(
    task: Task, *, val_fraction: float = 0.5, stratify: bool = True, generator: torch.Generator
) -> tuple[Task, Task]:
    """Support and query of a task: the split it brings, or a random one with ``val_fraction`` of the samples as
    query. Stratified, every class is on both sides, in equal shares (±1 sample); a class with one sample is refused."""
    if stratify and task.labels.dim() != 1:
        raise ValueError(
            f"a stratified split needs one class per sample, and the labels have shape {tuple(task.labels.shape)}: "
            "use stratify=False for labels that are not classes"
        )
    if task.support is not None and task.query is not None:
        if stratify and (alone := set(task.labels[task.support].tolist()) ^ set(task.labels[task.query].tolist())):
            raise ValueError(
                f"class {sorted(alone)[0]} is on one side of the task's split only (stratify=False allows that)"
            )
        return task.part(task.support), task.part(task.query)
    if not 0 < val_fraction < 1:
        raise ValueError(f"val_fraction must lie between 0 and 1, both excluded, not {val_fraction}")
    order = torch.randperm(len(task), generator=generator)
    groups = [order]
    if stratify:
        labels = task.labels.cpu()[order]
        groups = [order[labels == label] for label in sorted(set(labels.tolist()))]
    held = [_cut(len(group), val_fraction) for group in groups]
    for group, count in zip(groups, held, strict=True):
        if not 1 <= count < len(group):
            what = f"class {task.labels[int(group[0])].item()}" if stratify else "the task"
            hint = ": use stratify=False for labels that are not classes" if task.labels.is_floating_point() else ""
            raise ValueError(f"{what} has {len(group)} samples, too few to be on both sides of a split{hint}")
    query = torch.cat([group[:count] for group, count in zip(groups, held, strict=True)])
    support = torch.cat([group[count:] for group, count in zip(groups, held, strict=True)])
    return task.part(support), task.part(query)


def _cut(count: int, fraction: float) -> int:
    """Samples for the query side: the nearest whole number, but one at least on either side where that can be."""
    return min(max(round(count * fraction), 1), count - 1)


def logits_of(outputs: Any) -> Tensor:
    found: Tensor = outputs.logits if hasattr(outputs, "logits") else outputs
    return found


def margins(outputs: Any, labels: Tensor) -> Tensor:
    """How far each sample is on the right side: y·f for one output and labels ±1, else the logit of the label minus the
    largest other one."""
    logits = logits_of(outputs).detach()
    if logits.dim() == 1 or logits.shape[-1] == 1:
        if not bool((labels.abs() == 1).all()):
            raise ValueError("a model with one output needs labels +1 and −1")
        return logits.reshape(labels.shape) * labels
    own = logits.gather(1, labels.unsqueeze(1)).squeeze(1)
    return own - logits.scatter(1, labels.unsqueeze(1), float("-inf")).amax(1)


@dataclass(frozen=True)
class InnerLoop:
    """J steps of gradient descent from the model's weights on one task, the model itself untouched.

    ``inner_params`` names the parameters (or modules) that adapt: a head, adapters; None adapts all that train.
    ``statistics`` is what normalisation layers use: ``batch`` statistics of the task at hand (running averages are
    never read nor changed) or ``frozen`` ones. Dropout is off in both loops. ``proximal`` is λ of a penalty λ‖V − W‖²
    on the way, taken implicitly, so that any λ is stable: 0 is plain descent, λ → ∞ does not move.
    """

    inner_lr: float
    inner_steps: int = 5
    inner_params: tuple[str, ...] | None = None
    statistics: Literal["batch", "frozen"] = "batch"
    proximal: float = 0.0

    def __post_init__(self) -> None:
        if self.inner_lr < 0 or self.proximal < 0:
            raise ValueError("inner_lr and proximal must not be negative")
        if self.inner_steps < 0:
            raise ValueError(f"inner_steps must not be negative, and it is {self.inner_steps}")
        if self.statistics not in ("batch", "frozen"):
            raise ValueError(f"statistics must be 'batch' or 'frozen', not {self.statistics!r}")
        if isinstance(self.inner_params, str):
            raise ValueError("inner_params takes a list of names")

    def trainable(self, model: nn.Module) -> dict[str, nn.Parameter]:
        found = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not found:
            raise ValueError("the model has no trainable parameters")
        return found

    def adapting(self, model: nn.Module) -> list[str]:
        """Names of the parameters that the inner loop changes."""
        names = list(self.trainable(model))
        if self.inner_params is None:
            return names
        chosen = [n for n in names if any(n == word or n.startswith(f"{word}.") for word in self.inner_params)]
        for word in self.inner_params:
            if not any(n == word or n.startswith(f"{word}.") for n in chosen):
                raise ValueError(
                    f"inner_params: no trainable parameter is called {word!r} or lies in a module of that name"
                )
        return chosen

    def loss(self, model: nn.Module, weights: Parameters, task: Task, loss_fn: Loss) -> tuple[Tensor, Any]:
        """The loss and the model's answer with ``weights`` in place of its parameters; buffers are copies."""
        buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        outputs: Any
        if isinstance(task.inputs, Mapping):
            outputs = functional_call(model, {**buffers, **weights}, (), dict(task.inputs))
        else:
            outputs = functional_call(model, {**buffers, **weights}, (task.inputs,))
        value = loss_fn(outputs, task.labels)
        if value.dim() != 0:
            raise ValueError("loss_fn must return one number, the mean over samples")
        return value, outputs

    def adapt(self, model: nn.Module, task: Task, loss_fn: Loss, *, create_graph: bool = False) -> Parameters:
        """All trainable parameters after the inner steps on ``task``. With ``create_graph`` the steps can be
        differentiated through; without, the tensors are leaves of their own."""
        start: Parameters = dict(self.trainable(model))
        names = self.adapting(model)
        weights: Parameters = start if create_graph else {n: p.detach().requires_grad_() for n, p in start.items()}
        with self.modes(model), torch.enable_grad():
            for _ in range(self.inner_steps):
                value, _ = self.loss(model, weights, task, loss_fn)
                slopes = torch.autograd.grad(value, [weights[n] for n in names], create_graph=create_graph,
                                             materialize_grads=True)  # fmt: skip
                moved = {n: self._step(weights[n], slope, start[n]) for n, slope in zip(names, slopes, strict=True)}
                if not create_graph:
                    moved = {n: value.detach().requires_grad_() for n, value in moved.items()}
                weights = {**weights, **moved}
        return weights

    def _step(self, weight: Tensor, slope: Tensor, start: Tensor) -> Tensor:
        moved = weight - self.inner_lr * slope
        if self.proximal == 0:
            return moved
        pull = 2 * self.inner_lr * self.proximal
        return moved + (start - moved) * (pull / (1 + pull))

    @contextmanager
    def modes(self, model: nn.Module) -> Iterator[None]:
        """Dropout off; normalisation layers on batch statistics or frozen. The old modes come back."""
        before = {module: module.training for module in model.modules()}
        try:
            model.eval()
            if self.statistics == "batch":
                for module in model.modules():
                    if hasattr(module, "running_mean"):
                        module.train()
            yield
        finally:
            for module, training in before.items():
                module.training = training


def draw_tasks(sampler: TaskSampler | Sequence[Task], count: int, generator: torch.Generator) -> list[Task]:
    """``count`` tasks: from a function of the generator, or without replacement from a list."""
    if callable(sampler):
        return [sampler(generator) for _ in range(count)]
    if not 1 <= count <= len(sampler):
        raise ValueError(f"{count} tasks cannot be drawn from a list of {len(sampler)}")
    return [sampler[int(i)] for i in torch.randperm(len(sampler), generator=generator)[:count]]


def finite(value: Tensor, step: int) -> float:
    if not bool(torch.isfinite(value)):
        raise FloatingPointError(f"the loss is not finite at outer step {step}: lower the learning rates")
    return float(value.detach())


def mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
