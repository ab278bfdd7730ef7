"""A domain's samples by number, whether they lie in memory or are decoded one by one, and the batches of a training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from assay.training.seeds import stream

Inputs = Any  # a tensor, or a mapping of tensors as Hugging Face models take it
Batch = tuple[Inputs, Tensor]


class Samples:
    """The samples of one domain: an ``ImageSet``, a pair (inputs, labels) where inputs are a tensor, an array or a
    mapping of these, or a map-style data set of pairs that knows its ``labels`` or ``targets``."""

    def __init__(self, name: str, domain: Any) -> None:
        self.name = name
        self.dataset: Any = None
        self.inputs: Inputs = None
        if isinstance(domain, tuple) and len(domain) == 2:
            inputs, labels = domain
        else:
            inputs = getattr(domain, "images", None)
            labels = getattr(domain, "labels", getattr(domain, "targets", None))
            if labels is None or not hasattr(domain, "__len__"):
                raise ValueError(f"the domain {name!r} must be inputs with labels, not {type(domain).__name__}")
        self.labels = torch.as_tensor(labels).long()
        if inputs is None:
            self.dataset, sizes = domain, {len(domain)}
        elif isinstance(inputs, Mapping):
            self.inputs = {key: torch.as_tensor(each) for key, each in inputs.items()}
            sizes = {len(each) for each in self.inputs.values()}
        else:
            self.inputs = torch.as_tensor(inputs)
            sizes = {len(self.inputs)}
        if self.labels.ndim != 1 or not len(self.labels) or sizes != {len(self.labels)}:
            raise ValueError(f"the domain {name!r} must have one label for every input, and at least one of them")
        if self.labels.min() < 0:
            raise ValueError(f"the labels of the domain {name!r} must be classes from 0 on")

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, chosen: Iterable[Tensor], workers: int = 0) -> Iterator[Batch]:
        """The samples of every tensor of numbers, as one batch each."""
        if self.dataset is not None:
            lists = [numbers.tolist() for numbers in chosen]
            for inputs, labels in DataLoader(self.dataset, batch_sampler=lists, num_workers=workers):
                yield inputs, torch.as_tensor(labels).long()
            return
        for numbers in chosen:
            if isinstance(self.inputs, dict):
                yield {key: each[numbers] for key, each in self.inputs.items()}, self.labels[numbers]
            else:
                yield self.inputs[numbers], self.labels[numbers]

    def split(self, holdout: float, seed: int) -> tuple[Tensor, Tensor]:
        """Numbers for training and for validation, the share ``holdout`` drawn by the seed."""
        kept = min(max(round(len(self) * holdout), 1), len(self) - 1)
        if len(self) < 2:
            raise ValueError(f"the domain {self.name!r} has {len(self)} sample: none can be held out")
        order = torch.randperm(len(self), generator=stream(seed, f"split {self.name}"))
        return order[kept:], order[:kept]


def endless(numbers: Tensor, batch: int, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    """So many batches of numbers: shuffled anew whenever all were seen, across which a batch may reach."""
    waiting = numbers[:0]
    for _ in range(steps):
        while len(waiting) < batch:
            waiting = torch.cat([waiting, numbers[torch.randperm(len(numbers), generator=generator)]])
        yield waiting[:batch]
        waiting = waiting[batch:]


def joined(batches: Iterable[Batch]) -> Batch:
    """The batches of several domains as one."""
    parts = list(batches)
    labels = torch.cat([labels for _, labels in parts])
    if isinstance(parts[0][0], Mapping):
        return {key: torch.cat([inputs[key] for inputs, _ in parts]) for key in parts[0][0]}, labels
    return torch.cat([inputs for inputs, _ in parts]), labels


def moved(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device."""
    inputs, labels = batch
    if isinstance(inputs, Mapping):
        return {key: each.to(device) for key, each in inputs.items()}, labels.to(device)
    return inputs.to(device), labels.to(device)
