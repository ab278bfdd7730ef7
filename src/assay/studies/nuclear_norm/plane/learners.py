"""Two linear layers on two-dimensional inputs, trained by full-batch gradient descent, all seeds at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from assay.methods.nuclear_norm import nuclear_norm, singular_values
from assay.training.seeds import Seeds


@dataclass(frozen=True)
class Descent:
    """Gradient descent whose rate falls linearly to 0, which ends the oscillation around features of rank one."""

    steps: int
    rate: float
    decay: float = 0.0
    strength: float = 0.0
    free_head: bool = False


@dataclass(frozen=True)
class Trained:
    """Per seed: the classifier v = Aᵀh (seeds, 2), the second over the first singular value of the features, their
    nuclear norm over √n and the head's norm."""

    classifier: Tensor
    second_value: Tensor
    penalty: Tensor
    head_norm: Tensor


def train(z: Tensor, seeds: Seeds, recipe: Descent) -> Trained:
    """Features Φ(x) = Ax and a head, fixed to (1, 1)/√2 or trained, on label times inputs z (seeds, n, 2). Weight
    decay is on the classifier, as in the theory. The features' singular values are those of RAᵀ with z = QR."""
    n = z.shape[1]
    triangle = torch.linalg.qr(z, mode="r").R
    extractor = (0.5 * seeds.normal("extractor", 2, 2)).requires_grad_()
    head = torch.full((len(seeds), 2), 0.5**0.5, dtype=z.dtype, device=z.device).requires_grad_(recipe.free_head)
    parameters = [extractor, head] if recipe.free_head else [extractor]
    for step in range(recipe.steps):
        v = (head.unsqueeze(1) @ extractor).squeeze(1)
        losses = softplus(-(z @ v.unsqueeze(2)).squeeze(2)).mean(1) + recipe.decay / 2 * v.square().sum(1)
        if recipe.strength:
            losses = losses + recipe.strength * _norm(triangle, extractor, n)
        slopes = torch.autograd.grad(losses.sum(), parameters)
        rate = recipe.rate * (1 - step / recipe.steps)
        with torch.no_grad():
            for parameter, slope in zip(parameters, slopes, strict=True):
                parameter -= rate * slope
    with torch.no_grad():
        values = singular_values(triangle @ extractor.mT, stacked=True)
        return Trained(
            (head.unsqueeze(1) @ extractor).squeeze(1).detach(),
            values[:, 1] / values[:, 0],
            _norm(triangle, extractor, n),
            head.norm(dim=1),
        )


def _norm(triangle: Tensor, extractor: Tensor, n: int) -> Tensor:
    return nuclear_norm(triangle @ extractor.mT, "none", stacked=True).div(n**0.5)
