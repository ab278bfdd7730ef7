"""What labels send back through a model: the residual at zero output, or at the output that it has now."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from assay.methods._checks import all_finite, whole
from assay.methods._data import Labelled

_UNEVEN = 0.2  # of the residuals' size: where their mean is longer, the mean input shows in every gradient


class Residuals:
    """Residuals (n, outputs) for outputs and targets.

    One output with labels 0/1 or ±1: y = ±1. Several outputs with class labels: one-hot − 1/classes. Numbers as
    targets: the target minus its mean over the data. At the present output (``center=False``) these are minus the
    gradients of the logistic, the softmax and half the squared loss. ``first`` are the targets of one batch: they say
    which of these the data are.
    """

    def __init__(self, first: Tensor, data: Labelled, *, center: bool = True, output: int | None = None) -> None:
        self.center, self.output = center, output
        self.samples, self.seen = 0, set[int]()
        self.total, self.energy = torch.zeros(1), 0.0
        self.mean: Tensor | None = None
        if first.is_floating_point():
            targets = data.targets()
            if targets[0].numel() > 1 or not bool((targets.abs() == 1).all()):
                self.mean = targets.mean(0)

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        all_finite("the model's outputs", outputs)
        outputs = outputs.float()
        if outputs.ndim < 2:  # a model that squeezes its output squeezes away the axis of a single sample too
            outputs = outputs.reshape(len(targets), -1) if len(targets) == 1 else outputs.unsqueeze(-1)
        targets = targets.squeeze(1) if targets.ndim == 2 and targets.shape[1] == 1 else targets
        if outputs.ndim != 2 or len(outputs) != len(targets):
            shapes = f"outputs {tuple(outputs.shape)} for {len(targets)} targets"
            raise ValueError(f"the model must give one answer per sample, (n,) or (n, outputs), not {shapes}")
        if self.mean is not None:
            residual = self._numbers(outputs, targets)
        elif outputs.shape[1] == 1:
            residual = self._signs(outputs, targets)
        else:
            residual = self._classes(outputs, targets)
        if self.output is not None:
            column = whole("output", self.output, 0, outputs.shape[1] - 1)
            residual = residual * one_hot(torch.tensor(column), outputs.shape[1]).to(residual)
        self.samples += len(residual)
        self.total = self.total + residual.sum(0).cpu()
        self.energy += float(residual.square().sum())
        return residual

    def warnings(self) -> tuple[str, ...]:
        """What the residuals themselves say against reading directions as features."""
        size = (self.energy / self.samples) ** 0.5
        mean = float(torch.linalg.vector_norm(self.total / self.samples))
        if size == 0:
            raise ValueError("every residual is zero: the targets are all the same")
        if mean <= _UNEVEN * size:
            return ()
        return (
            f"the residuals have a mean ({mean / size:.2f} of their size), so that part of every direction is the mean "
            "input, whatever the labels say: balance the classes",
        )

    def _numbers(self, outputs: Tensor, targets: Tensor) -> Tensor:
        assert self.mean is not None
        targets = targets.unsqueeze(1) if targets.ndim == 1 else targets
        if targets.shape != outputs.shape:
            shapes = f"targets {tuple(targets.shape)} do not fit outputs {tuple(outputs.shape)}"
            raise ValueError(f"{shapes}: numbers need an output each, classes are integers")
        return targets - (self.mean.to(targets) if self.center else outputs)

    def _signs(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self.seen |= set(torch.unique(targets).long().tolist())
        if targets.ndim != 1 or not (self.seen <= {0, 1} or self.seen <= {-1, 1}):
            raise ValueError(f"a single output needs labels 0 and 1, or -1 and 1, not {sorted(self.seen)[:5]}")
        signs = torch.where(targets == 1, 1.0, -1.0).unsqueeze(1)
        return signs if self.center else signs * torch.sigmoid(-signs * outputs)

    def _classes(self, outputs: Tensor, targets: Tensor) -> Tensor:
        classes = outputs.shape[1]
        if targets.ndim != 1 or targets.is_floating_point() or not bool(((targets >= 0) & (targets < classes)).all()):
            raise ValueError(f"{classes} outputs need one class label from 0 to {classes - 1} per sample")
        return one_hot(targets, classes).float() - (1 / classes if self.center else outputs.softmax(1))
