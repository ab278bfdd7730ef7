"""Ordinary training of a ReLU network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds
from assay.training.two_layer import take


@dataclass(frozen=True)
class ReluRun:
    """A standard ReLU network after some epochs: weights (seeds, neurons, dim), test accuracy (seeds,)."""

    epoch: int
    weights: Tensor
    test_accuracy: Tensor


def train_relu(
    data: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    seeds: Seeds,
    *,
    width: int,
    epochs: tuple[int, ...],
    batch: int = 128,
    rate: float = 0.1,
    momentum: float = 0.9,
) -> Iterator[ReluRun]:
    """Ordinary training (logistic loss, SGD with momentum, Gaussian initialisation); yields at the given epochs."""
    inputs, labels = data
    n, dim = inputs.shape[1:]
    weights = (seeds.normal("relu weights", width, dim) * dim**-0.5).requires_grad_()
    biases = torch.zeros(len(seeds), width, device=inputs.device, dtype=inputs.dtype).requires_grad_()
    output = (seeds.normal("relu outputs", width) * width**-0.5).requires_grad_()
    optimizer = torch.optim.SGD([weights, biases, output], lr=rate, momentum=momentum)

    def forward(x: Tensor) -> Tensor:
        hidden = torch.relu(torch.baddbmm(biases.unsqueeze(1), x, weights.mT))
        return torch.squeeze(hidden @ output.unsqueeze(-1), -1)

    def report(epoch: int) -> ReluRun:
        with torch.no_grad():
            right = (forward(test[0]) > 0) == (test[1] > 0)
        return ReluRun(epoch, weights.detach().clone(), right.double().mean(1))

    per_epoch = n // batch
    if 0 in epochs:
        yield report(0)
    for step, index in enumerate(seeds.batches("relu batches", n, batch, per_epoch * max(epochs)), 1):
        x, y = take(inputs, labels, index)
        loss = torch.nn.functional.softplus(-y * forward(x)).mean(1).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % per_epoch == 0 and step // per_epoch in epochs:
            yield report(step // per_epoch)
