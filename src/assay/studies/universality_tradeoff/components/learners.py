"""A linear representation trained with the contrastive loss ℓ(t) = −t on sampled triples."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.training import Seeds

from ..problem import FiniteModel


def train_projection(
    model: FiniteModel, inputs: Tensor, seeds: Seeds, *, outputs: int, steps: int, batch: int, rate: float
) -> Tensor:
    """Orthonormal rows W (seeds, outputs, dim): gradient steps on E[−φ(x)ᵀ(φ(x⁺) − φ(x⁻))], each followed by a QR
    decomposition; the rate falls to zero. ``inputs`` are (seeds, R, U, dim)."""
    dim = inputs.shape[-1]
    weights: Tensor = torch.linalg.qr(seeds.normal("projection", dim, outputs))[0].mT
    rows = torch.arange(len(seeds), device=seeds.device)[:, None]
    # In units of the inputs' mean square, so that one rate suits every way to generate them.
    size = inputs.square().sum(-1).mean((1, 2))[:, None, None]
    for step in range(steps):
        states = model.triples(seeds, f"triples of step {step}", batch)
        x, positive, negative = (inputs[rows, at[..., 0], at[..., 1]] for at in states)
        apart = (positive - negative) @ weights.mT
        together = x @ weights.mT
        slope = (apart.mT @ x + together.mT @ (positive - negative)) / batch
        weights = torch.linalg.qr((weights + rate * (1 - step / steps) * slope / size).mT)[0].mT
    return weights


def covariance(points: Tensor, shares: Tensor) -> Tensor:
    """Of points (..., n, dim) with these shares (n,)."""
    centred = points - torch.einsum("...nd,n->...d", points, shares).unsqueeze(-2)
    return torch.einsum("...nd,...ne,n->...de", centred, centred, shares)


def principal(matrix: Tensor, count: int) -> Tensor:
    """The ``count`` leading eigenvectors as rows."""
    vectors: Tensor = torch.linalg.eigh(matrix)[1]
    return vectors[..., -count:].mT
