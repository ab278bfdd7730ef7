"""Mixup: train on convex combinations of pairs of samples and of their losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ._checks import all_finite, check_fields, limits
from ._models import logits_in

Inputs = Any  # a tensor, or a mapping of tensors as Hugging Face models take it


@dataclass(frozen=True)
class Mixed:
    """A mixed batch: ``share`` · first + (1 - ``share``) · second, with the labels of both."""

    inputs: Inputs
    first: Tensor
    second: Tensor
    share: float

    def loss(self, output: Any, criterion: Callable[[Tensor, Tensor], Tensor] = cross_entropy) -> Tensor:
        """The criterion on both labels in the same shares; ``output`` is a tensor of logits or a record with them."""
        logits = logits_in(output)
        if self.share == 1:
            return criterion(logits, self.first)
        return self.share * criterion(logits, self.first) + (1 - self.share) * criterion(logits, self.second)


@dataclass(frozen=True)
class Mixup:
    """Mix a batch with a shuffled copy of itself, in shares η and 1 - η with η from Beta(``alpha``, ``alpha``), one
    draw per batch. ``alpha`` = 0 leaves batches as they are.

    >>> mixed = Mixup(0.2)(inputs, labels, generator=generator)
    >>> loss = mixed.loss(model(mixed.inputs))
    """

    alpha: float = field(default=0.2, metadata=limits(least=0))

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, inputs: Inputs, labels: Any, *, generator: torch.Generator) -> Mixed:
        """Inputs are a tensor or array (batch, ...) or a mapping of these; labels are classes (batch,) or shares
        (batch, classes). The draws come from ``generator`` alone, which must be on the CPU."""
        targets = torch.as_tensor(labels)
        targets = targets if targets.is_floating_point() else targets.long()
        parts = {"inputs": inputs} if not isinstance(inputs, Mapping) else inputs
        tensors = {name: torch.as_tensor(each) for name, each in parts.items()}
        for name, each in tensors.items():
            if each.shape[:1] != targets.shape[:1] or not len(targets):
                raise ValueError(f"{name} and labels must have the same number of samples, at least one")
            if not each.is_floating_point():
                raise ValueError(f"{name} are {each.dtype} and cannot be mixed: mix embeddings or other real numbers")
            all_finite(name, each)
        if not self.alpha:
            return Mixed(inputs, targets, targets, 1.0)
        seed = int(torch.randint(2**62, (), generator=generator))
        share = float(np.random.default_rng(seed).beta(self.alpha, self.alpha))
        order = torch.randperm(len(targets), generator=generator).to(targets.device)
        blends = {name: share * each + (1 - share) * each[order.to(each.device)] for name, each in tensors.items()}
        mixed = {name: each.to(tensors[name].dtype) for name, each in blends.items()}
        return Mixed(mixed if isinstance(inputs, Mapping) else mixed["inputs"], targets, targets[order], share)
