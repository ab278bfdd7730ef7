"""Tasks for meta-learning on any ``nn.Module``: what FOMAML, Reptile and the split audit share.

A task is a small labelled set. Inputs are a tensor (n, ...), or a mapping of tensors that the model takes as keyword
arguments (tokenised text); the model answers with a tensor or with an object that has ``logits``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ._checks import number
from ._data import as_targets, checked, rows_of, split_batch
from ._models import logits_in

Inputs = Tensor | Mapping[str, Tensor]
Loss = Callable[[Any, Tensor], Tensor]
TaskSampler = Callable[[torch.Generator], "Task"]


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
