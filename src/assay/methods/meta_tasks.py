"""Tasks for meta-learning on any ``nn.Module``: what FOMAML, Reptile and the split audit share.

A task is a small labelled set. Inputs are a tensor (n, ...), or a mapping of tensors that the model takes as keyword
arguments (tokenised text); the model answers with a tensor or with an object that has ``logits``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ._checks import check_fields, limits, number
from ._data import as_targets, checked, rows_of, split_batch
from ._models import evaluating, logits_in, no_recomputation, output_of
from ._precision import uncached_casts

Inputs = Tensor | Mapping[str, Tensor]
Loss = Callable[[Any, Tensor], Tensor]
Parameters = dict[str, Tensor]
TaskSampler = Callable[[torch.Generator], "Task"]
RECOMPUTES = (
    "the model uses gradient checkpointing, which would repeat a pass with other weights than it had when gradients "
    "are taken through the inner steps: switch it off, or use order='first'"
)
REENTRANT = (
    "the model uses reentrant gradient checkpointing, which hides weights from the inner loop: set use_reentrant=False"
)


@dataclass(frozen=True)
class Task:
    """Samples of one task. ``support`` and ``query`` are index tensors of a split that is already made, places (counted
    from the end when negative) or masks (one flag per sample); they are kept as places. Without them the method splits.
    ``inputs`` has a first axis of samples, in every tensor when it is a mapping; arrays become tensors, labels of any
    integer type int64, and a mapping may bring its labels along: ``Task(batch, batch["labels"])``."""

    inputs: Inputs
    labels: Tensor
    support: Tensor | None = None
    query: Tensor | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", checked(split_batch(self.inputs, self.labels)[0]))
        real = isinstance(self.labels, Tensor) and self.labels.is_floating_point()
        object.__setattr__(self, "labels", self.labels if real else as_targets(self.labels))
        lengths = {len(part) for part in _tensors(self.inputs)} | {len(self.labels)}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError("a task needs one label for every input, and at least one sample")
        if (self.support is None) != (self.query is None):
            raise ValueError("give both support and query indices, or neither")
        if self.support is not None and self.query is not None:
            support, query = (_places(*side, len(self)) for side in (("support", self.support), ("query", self.query)))
            object.__setattr__(self, "support", support)
            object.__setattr__(self, "query", query)
            if both := set(support.tolist()) & set(query.tolist()):
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
        return Task(rows_of(self.inputs, chosen), self.labels[chosen])

    def __len__(self) -> int:
        return len(self.labels)


def _places(name: str, index: Any, count: int) -> Tensor:
    """Where the samples of one side are, each place by one number only: with −1 beside 3 of four samples, a sample on
    both sides would not be seen."""
    found = torch.as_tensor(index)
    flags = found.dtype == torch.bool
    if found.dim() != 1 or found.is_floating_point() or found.is_complex() or (flags and len(found) != count):
        raise ValueError(f"{name} must be a list of places or one flag for each of {count} samples, not {index!r}")
    if flags:
        return found.nonzero().squeeze(1)
    found = found.long()
    if wrong := [place for place in found.tolist() if not -count <= place < count]:
        raise ValueError(f"{name} asks for sample {wrong[0]}, and there are {count}")
    return torch.where(found < 0, found + count, found)


def _matched(support: Inputs, query: Inputs) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors of both sides in the same order: fields of mappings by name."""
    ours, theirs = (side if isinstance(side, Mapping) else {"a tensor": side} for side in (support, query))
    if set(ours) != set(theirs):
        raise ValueError(f"support has the fields {', '.join(ours)}, and query {', '.join(theirs)}")
    return list(ours.values()), [theirs[name] for name in ours]


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
    number("val_fraction", val_fraction, above=0, below=1)
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


def margins(outputs: Any, labels: Tensor) -> Tensor:
    """How far each sample is on the right side: y·f for one output and labels ±1, else the logit of the label minus the
    largest other one."""
    logits = logits_in(outputs).detach()
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

    inner_lr: float = field(metadata=limits(least=0))
    inner_steps: int = field(default=5, metadata=limits(least=0))
    inner_params: tuple[str, ...] | None = None
    statistics: Literal["batch", "frozen"] = "batch"
    proximal: float = field(default=0.0, metadata=limits(least=0))

    def __post_init__(self) -> None:
        check_fields(self)

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
        known = {name: name.replace("_orig_mod.", "") for name in names}  # a compiled module is named as it was written

        def lies(name: str, word: str) -> bool:
            return word in (name, known[name]) or name.startswith(f"{word}.") or known[name].startswith(f"{word}.")

        chosen = [name for name in names if any(lies(name, word) for word in self.inner_params)]
        for word in self.inner_params:
            if not any(lies(name, word) for name in chosen):
                raise ValueError(
                    f"inner_params: no trainable parameter is called {word!r} or lies in a module of that name"
                )
        return chosen

    def loss(self, model: nn.Module, weights: Parameters, task: Task, loss_fn: Loss) -> tuple[Tensor, Any]:
        """The loss and the model's answer with ``weights`` in place of its parameters; buffers are copies. A model that
        checkpoints is refused where gradients are on: by the time they are taken, its own weights are back."""
        with no_recomputation(model, RECOMPUTES):
            value, outputs, _ = _call(_Pass(model), weights, task, loss_fn)
        return value, outputs

    def slopes(
        self, model: nn.Module, weights: Parameters, task: Task, loss_fn: Loss, names: Sequence[str]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The loss, and its gradient for the weights called ``names``, taken while they are still in place: a model
        that checkpoints computes its pass anew for the gradient, and must find the weights of the first time."""
        with no_recomputation(model, REENTRANT, reentrant_only=True):
            value, _, found = _call(_Pass(model, [weights[name] for name in names]), weights, task, loss_fn)
        return value, found

    def adapt(self, model: nn.Module, task: Task, loss_fn: Loss, *, create_graph: bool = False) -> Parameters:
        """All trainable parameters after the inner steps on ``task``. With ``create_graph`` the steps can be
        differentiated through; without, the tensors are leaves of their own."""
        start: Parameters = dict(self.trainable(model))
        names = self.adapting(model)
        weights: Parameters = start if create_graph else {n: p.detach().requires_grad_() for n, p in start.items()}
        with self.modes(model), torch.enable_grad():
            for _ in range(self.inner_steps):
                if create_graph:
                    value, _ = self.loss(model, weights, task, loss_fn)
                    targets = [weights[name] for name in names]
                    slopes = torch.autograd.grad(value, targets, create_graph=True, materialize_grads=True)
                else:
                    _, slopes = self.slopes(model, weights, task, loss_fn, names)
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
        with evaluating(model):
            if self.statistics == "batch":
                for module in model.modules():
                    if hasattr(module, "running_mean"):
                        module.train()
            yield


class _Pass(nn.Module):
    """One pass of a model with its loss, and the gradient for ``targets``, as a module: ``functional_call`` exchanges
    weights for as long as a module's forward runs, so that the gradient is taken within."""

    def __init__(self, model: nn.Module, targets: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self.model, self.targets = model, targets

    def forward(self, task: Task, loss_fn: Loss) -> tuple[Tensor, Any, tuple[Tensor, ...]]:
        outputs = output_of(self.model, task.inputs)
        value = loss_fn(outputs, task.labels)
        slopes = torch.autograd.grad(value, self.targets, materialize_grads=True) if self.targets else ()
        return value, outputs, slopes


def _call(one: _Pass, weights: Parameters, task: Task, loss_fn: Loss) -> tuple[Tensor, Any, tuple[Tensor, ...]]:
    """The pass with ``weights`` for parameters and copies for buffers. Under autocast every pass casts its weights
    anew: adapted ones are new tensors in each, and the model's own change between outer steps."""
    buffers = {name: buffer.clone() for name, buffer in one.model.named_buffers()}
    held = {f"model.{name}": value for name, value in (buffers | weights).items()}
    with uncached_casts():
        found: tuple[Tensor, Any, tuple[Tensor, ...]] = functional_call(one, held, (task, loss_fn))
    return found


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
