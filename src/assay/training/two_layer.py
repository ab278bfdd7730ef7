"""Two-layer networks stacked over seeds, their hinge gradients in closed form, and the fixed-feature comparators.

All tensors carry a leading seed axis: inputs (seeds, n, features), labels (seeds, n) of ±1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

_CHUNK = 4000  # samples at a time through a full-batch pass: the intermediate arrays stay within the cache


@dataclass(frozen=True)
class Activation:
    """An activation and its derivative, elementwise."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class TwoLayer:
    """g(x) = Σ_i output_i · activation(⟨weights_i, x⟩ + biases_i), one network per seed."""

    weights: Tensor  # (seeds, neurons, features)
    biases: Tensor  # (seeds, neurons)
    output: Tensor  # (seeds, neurons)

    def preactivation(self, inputs: Tensor) -> Tensor:
        """(seeds, n, neurons)."""
        return torch.baddbmm(self.biases.unsqueeze(1), inputs, self.weights.mT)

    def __call__(self, inputs: Tensor, activation: Activation) -> Tensor:
        """(seeds, n)."""
        return (activation.value(self.preactivation(inputs)) @ self.output.unsqueeze(-1)).squeeze(-1)

    def clone(self) -> TwoLayer:
        return TwoLayer(self.weights.clone(), self.biases.clone(), self.output.clone())


def hinge_residual(margin_signs: Tensor, outputs: Tensor, sample_weights: Tensor | None = None) -> Tensor:
    """−∂/∂g of the mean hinge loss: y·1{yg ≤ 1}/n, weighted per sample when asked: (seeds, n)."""
    residual = margin_signs * (margin_signs * outputs <= 1) / outputs.shape[-1]
    return residual if sample_weights is None else residual * sample_weights


def hinge_gradients(
    net: TwoLayer, inputs: Tensor, labels: Tensor, activation: Activation, sample_weights: Tensor | None = None
) -> TwoLayer:
    """The gradient of the mean hinge loss in every parameter, full batch, in chunks of samples."""
    n = inputs.shape[1]
    total = TwoLayer(*(torch.zeros_like(part) for part in (net.weights, net.biases, net.output)))
    for start in range(0, n, _CHUNK):
        rows = slice(start, start + _CHUNK)
        x, y = inputs[:, rows], labels[:, rows]
        z = net.preactivation(x)
        value = activation.value(z)
        outputs = (value @ net.output.unsqueeze(-1)).squeeze(-1)
        weights = None if sample_weights is None else sample_weights[:, rows]
        residual = hinge_residual(y, outputs, weights) * (x.shape[1] / n)
        gated = activation.slope(z).mul_(residual.unsqueeze(-1))
        total.weights.sub_(net.output.unsqueeze(-1) * (gated.mT @ x))
        total.biases.sub_(net.output * gated.sum(1))
        total.output.sub_((value.mT @ residual.unsqueeze(-1)).squeeze(-1))
    return total


@dataclass(frozen=True)
class Linearised:
    """The network's first-order model at its initialisation: f(x) = Σ a_i σ'(z_i)(⟨u_i, x⟩ + v_i) + c_i σ(z_i)."""

    start: TwoLayer
    moves: TwoLayer  # u, v, c: all zero at first

    @classmethod
    def at(cls, start: TwoLayer) -> Linearised:
        zeros = (torch.zeros_like(part) for part in (start.weights, start.biases, start.output))
        return cls(start, TwoLayer(*zeros))

    def gates(self, inputs: Tensor, activation: Activation) -> tuple[Tensor, Tensor]:
        z = self.start.preactivation(inputs)
        return activation.slope(z) * self.start.output.unsqueeze(1), activation.value(z)

    def __call__(self, inputs: Tensor, activation: Activation) -> Tensor:
        gates, values = self.gates(inputs, activation)
        return self._outputs(inputs, gates, values)

    def _outputs(self, inputs: Tensor, gates: Tensor, values: Tensor) -> Tensor:
        moved = (gates * self.moves.preactivation(inputs)).sum(-1)
        return moved + (values @ self.moves.output.unsqueeze(-1)).squeeze(-1)

    def gradients(self, inputs: Tensor, labels: Tensor, activation: Activation) -> TwoLayer:
        """The gradient of the mean hinge loss in (u, v, c)."""
        gates, values = self.gates(inputs, activation)
        residual = hinge_residual(labels, self._outputs(inputs, gates, values)).unsqueeze(-1)
        gated = gates * residual
        return TwoLayer(-(gated.mT @ inputs), -gated.sum(1), -(values.mT @ residual).squeeze(-1))


def descend(
    parameters: TwoLayer,
    gradients: Callable[[Tensor], TwoLayer],
    batches: Iterator[Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    every: int,
    early: tuple[int, ...] = (),
    anneal: Callable[[int], float] | None = None,
) -> Iterator[int]:
    """Step the optimizer along ``gradients(batch_indices)``; yields the step count at ``early`` steps, every ``every``
    steps and at the end. Optimizers act elementwise, so that seeds stacked in one tensor do not see each other."""
    rates = [group["lr"] for group in optimizer.param_groups]
    step = 0
    for step, index in enumerate(batches, 1):
        if anneal is not None:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * anneal(step)
        slopes = gradients(index)
        for name in ("weights", "biases", "output"):
            parameter = getattr(parameters, name)
            if parameter.requires_grad:
                parameter.grad = getattr(slopes, name)
        optimizer.step()
        if step % every == 0 or step in early:
            yield step
    if step % every and step not in early:
        yield step


def take(inputs: Tensor, labels: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Each seed's own batch: (seeds, batch, features), (seeds, batch)."""
    rows = torch.arange(len(inputs), device=inputs.device).unsqueeze(1)
    return inputs[rows, index], labels[rows, index]


def accuracies(predict: Callable[[Tensor], Tensor], inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Accuracy and balanced accuracy per seed of the sign of ``predict(inputs)``; an output of 0 counts as −1, and a
    seed with an output that is not finite has no accuracy (NaN)."""
    chunks = range(0, inputs.shape[1], _CHUNK)
    outputs = torch.cat([predict(inputs[:, start : start + _CHUNK]) for start in chunks], 1)
    right = torch.where(outputs > 0, 1.0, -1.0) == labels
    positive = labels > 0
    recalls = [(right & part).sum(1) / part.sum(1) for part in (positive, ~positive)]
    # A network that diverged has no accuracy; its constant answer would pass for chance.
    known = torch.where(outputs.isfinite().all(1), 1.0, torch.nan).double()
    return right.double().mean(1) * known, (recalls[0] + recalls[1]).double() / 2 * known


def frozen(net: TwoLayer, *, weights: bool = False) -> TwoLayer:
    """A copy whose second layer alone (or, with ``weights``, everything) is trainable."""
    copy = net.clone()
    for part in (copy.weights, copy.biases):
        part.requires_grad_(weights)
    copy.output.requires_grad_(True)
    return copy
