"""Convex heads on fixed features: ridge regression for many penalties at once, softmax regression by L-BFGS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ._precision import full_precision


@dataclass(frozen=True)
class Head:
    """scores = (features − shift)/scale @ weight.T + bias. One scale for all features: a feature that is seldom active
    stays small, and the penalty holds it."""

    weight: Tensor  # (outputs, dim)
    bias: Tensor  # (outputs,)
    shift: Tensor  # (dim,)
    scale: Tensor  # ()

    @full_precision()
    def __call__(self, features: Tensor) -> Tensor:
        """(n, dim) → (n, outputs)."""
        return (features - self.shift) / self.scale @ self.weight.T + self.bias


def _scaled(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    shift = features.mean(0)
    centred = features - shift
    scale = centred.square().mean().sqrt()
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    return centred / scale, shift, scale


@full_precision()
def ridge_heads(features: Tensor, targets: Tensor, penalties: Sequence[float]) -> list[Head]:
    """Heads that minimise mean squared error + penalty · ‖weight‖², one per penalty: features (n, dim), targets
    (n, outputs)."""
    x, shift, scale = _scaled(features)
    bias = targets.mean(0)
    values, vectors = torch.linalg.eigh(x.T @ x / len(x))
    along = vectors.T @ (x.T @ (targets - bias)) / len(x)
    tiny = torch.finfo(x.dtype).eps * values.amax().clamp_min(1)
    return [
        Head((vectors @ (along / (values.clamp_min(0) + penalty + tiny).unsqueeze(1))).T, bias, shift, scale)
        for penalty in penalties
    ]


@full_precision()
def ridge_by_cross_validation(features: Tensor, targets: Tensor, penalties: Sequence[float]) -> Head:
    """The ridge head of the penalty with the least generalised cross-validation error."""
    x, _, _ = _scaled(features)
    values = torch.linalg.eigvalsh(x.T @ x / len(x)).clamp_min(0)
    heads = ridge_heads(features, targets, penalties)
    errors = [(head(features) - targets).square().mean() for head in heads]
    freedom = [1 - float((values / (values + penalty)).sum()) / len(x) for penalty in penalties]
    scores = [float(error) / max(free, 1e-6) ** 2 for error, free in zip(errors, freedom, strict=True)]
    return heads[scores.index(min(scores))]


@full_precision()
def softmax_head(
    features: Tensor, labels: Tensor, classes: int, penalty: float, *, start: Head | None = None, iterations: int = 200
) -> Head:
    """The head that minimises cross-entropy + penalty/2 · ‖weight‖², from zero or from the head of another penalty.
    Nothing is random."""
    x, shift, scale = _scaled(features)
    weight = x.new_zeros(classes, x.shape[1]) if start is None else start.weight.clone()
    bias = x.new_zeros(classes) if start is None else start.bias.clone()
    # What follows takes gradients, also when it is called in inference mode.
    with torch.inference_mode(False), torch.enable_grad():
        x, labels = x.clone(), labels.clone()
        weight, bias = weight.clone().requires_grad_(), bias.clone().requires_grad_()
        optimizer = torch.optim.LBFGS(
            [weight, bias],
            max_iter=iterations,
            tolerance_grad=1e-6,
            tolerance_change=1e-10,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = cross_entropy(x @ weight.T + bias, labels) + penalty / 2 * weight.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        optimizer.step(closure)  # type: ignore[no-untyped-call]
    return Head(weight.detach(), bias.detach(), shift, scale)
