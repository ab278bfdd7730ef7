"""The inner loop of meta-learning: a model adapts to one task, and is itself untouched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ._checks import check_fields, limits
from ._models import evaluating, no_recomputation, output_of
from ._precision import uncached_casts
from .meta_tasks import Loss, Task

Parameters = dict[str, Tensor]

RECOMPUTES = (
    "the model uses gradient checkpointing, which would repeat a pass with other weights than it had when gradients "
    "are taken through the inner steps: switch it off, or use order='first'"
)

REENTRANT = (
    "the model uses reentrant gradient checkpointing, which hides weights from the inner loop: set use_reentrant=False"
)


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
