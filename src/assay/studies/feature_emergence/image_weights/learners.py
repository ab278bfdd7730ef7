"""Two-layer networks on two classes of real images.

The source leaves most training settings open. The defaults are those that learn the original task well, on the digits
and on part of MNIST. What that does not decide, above all the scale of the start, is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from assay.data.images import ImageSet
from assay.training.seeds import Seeds

from ..problem import standardized


@dataclass(frozen=True)
class WeightsEpoch:
    """After one epoch (0: before training). ``movement`` is the distance that the weights went in this epoch, as a
    share of the initial norm. All but ``epoch`` and ``weights`` (seeds, neurons, dim) are (seeds,)."""

    epoch: int
    weights: Tensor
    movement: Tensor
    train_loss: Tensor
    train_accuracy: Tensor
    test_accuracy: Tensor


def two_layer_weights(
    train: ImageSet,
    test: ImageSet,
    seeds: Seeds,
    *,
    width: int = 50,
    epochs: int = 20,
    batch: int = 50,
    learning_rate: float = 0.01,
    momentum: float = 0.95,
    init_scale: float = 1.0,
) -> Iterator[WeightsEpoch]:
    """ReLU networks a·relu(Wx + b) on sets with labels -1 and +1, logistic loss, SGD with momentum; yields every epoch.

    ``init_scale`` 1 starts W at N(0, 1/dim), so that pre-activations are N(0, 1), and a at N(0, 1/width). Accuracy
    hardly depends on it, but how far the weights turn does: the start outweighs what is learned unless it is small.
    """
    if not 1 <= batch <= len(train):
        raise ValueError(f"a batch of {batch} cannot be drawn from {len(train)} images")
    inputs, test_inputs = (part.to(seeds.device, seeds.dtype) for part in standardized(train, test))
    labels, test_labels = (each.labels.to(seeds.device, seeds.dtype) for each in (train, test))
    dim = inputs.shape[1]
    weights = (init_scale * dim**-0.5 * seeds.normal("weights", width, dim)).requires_grad_()
    head = (width**-0.5 * seeds.normal("head", width)).requires_grad_()
    bias = torch.zeros_like(head, requires_grad=True)

    def outputs(x: Tensor) -> Tensor:
        """(seeds, n) of inputs (n, dim) or (seeds, n, dim)."""
        hidden = torch.relu(x @ weights.mT + bias.unsqueeze(1))
        return torch.squeeze(hidden @ head.unsqueeze(2), 2)

    def epoch_report(epoch: int, before: Tensor) -> WeightsEpoch:
        with torch.no_grad():
            out, now = outputs(inputs), weights.detach().clone()
            moved = (now - before).flatten(1).norm(dim=1) / start.flatten(1).norm(dim=1)
            accuracy = ((out * labels) > 0).float().mean(dim=1)
            test_accuracy = ((outputs(test_inputs) * test_labels) > 0).float().mean(dim=1)
            return WeightsEpoch(
                epoch, now, moved, functional.softplus(-out * labels).mean(dim=1), accuracy, test_accuracy
            )

    optimizer = torch.optim.SGD([weights, bias, head], lr=learning_rate, momentum=momentum)
    start = before = weights.detach().clone()
    yield epoch_report(0, before)
    steps = len(inputs) // batch
    for step, index in enumerate(seeds.batches("batches", len(inputs), batch, epochs * steps), start=1):
        optimizer.zero_grad()
        loss = functional.softplus(-outputs(inputs[index]) * labels[index]).mean(dim=1).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % steps == 0:
            report = epoch_report(step // steps, before)
            before = report.weights
            yield report
