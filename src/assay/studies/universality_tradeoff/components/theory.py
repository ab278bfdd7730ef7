"""Constructions around the invariance of contrastive optima in the finite model."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..problem import FiniteModel, Loss


def smoothed_loss(model: FiniteModel, table: Tensor, loss: Loss) -> Tensor:
    """E ℓ(φ_{z_R}ᵀφ_{z_R} − φ_{z_R}ᵀφ_{z_R⁻}), a sum over pairs: below the loss of the table by Jensen's inequality."""
    p = model.shares(table)[0]
    means = model.averaged(table)
    similar = means @ means.mT
    margins = similar.diagonal(dim1=-2, dim2=-1).unsqueeze(-1) - similar
    return (loss(margins) * p.unsqueeze(-1) * p).sum((-2, -1))


def repaired(model: FiniteModel, table: Tensor, radius: float) -> Tensor:
    """The averaged representation brought back to norm ``radius`` by a coordinate of its own for each z_R: inner
    products of different z_R stay, own ones grow to radius², so that no margin falls. Averaging alone shortens the
    vectors and leaves the class of constant norm; this step, which the source's proof lacks, needs as many more
    dimensions as z_R has values."""
    means = model.averaged(table)
    missing = (radius**2 - means.square().sum(-1)).clamp(min=0).sqrt()
    whole = torch.cat([means, torch.diag_embed(missing)], -1)
    return whole.unsqueeze(-2).expand(*whole.shape[:-1], model.shape[1], whole.shape[-1])


def hinge_counterexample(angle: float) -> tuple[FiniteModel, Tensor]:
    """Two values of z_R and two of z_U, all even: vectors of norm √2, in a plane for each z_R, with ``angle`` between
    the two z_U. The hinge loss is linear at all margins of equal z_R, so that it does not see the angle up to 60°."""
    half = angle / 2
    table = torch.zeros(2, 2, 4, dtype=torch.float64)
    for a in range(2):
        for u, sign in enumerate((-1, 1)):
            table[a, u, 2 * a] = math.sqrt(2) * math.cos(half)
            table[a, u, 2 * a + 1] = sign * math.sqrt(2) * math.sin(half)
    return FiniteModel((0.5, 0.5), (0.5, 0.5)), table


def captured(weights: Tensor, covariance: Tensor) -> Tensor:
    """Variance tr(W Σ Wᵀ) that orthonormal rows W (..., k, d) capture, as a share of the most that k rows can."""
    most = torch.linalg.eigvalsh(covariance)[..., -weights.shape[-2] :].sum(-1)
    found: Tensor = torch.einsum("...kd,...de,...ke->...", weights, covariance, weights) / most
    return found
