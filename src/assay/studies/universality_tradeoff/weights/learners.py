"""What a linear encoder makes of a task's features, whichever way it came about: a probe of encoders of linear tasks.

The contrastive loss, the predictor norm and the bound depend on an encoder W by blocks of G = (WM)ᵀ(WM), one block for
each task. The probe reads these, and not the spectrum of W, which the loss leaves open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..learners import gram
from ..problem import LinearTasks
from ..theory import risk_bound

REAL = 1e-9  # of the largest eigenvalue of a block: what is below is no feature


@dataclass(frozen=True)
class FeatureWeights:
    """One number per seed of each: mean squared weights of the shared and of the task's private features, the largest
    entry off the diagonal of the task's block, the largest squared weight of a spurious coordinate, the norm B of the
    smallest predictor that is exact on the task's features, and the complexity's leading term and the risk bound at a
    number of labels.

    B is infinite where no predictor is exact, as for a private feature without weight. It takes no notice of spurious
    coordinates, which ``leakage`` tells of."""

    shared: Tensor
    private: Tensor
    off_diagonal: Tensor
    leakage: Tensor
    norm: Tensor
    leading: Tensor
    bound: Tensor


def feature_weights(
    problem: LinearTasks,
    weights: Tensor,
    basis: Tensor,
    *,
    task: int,
    private: float,
    labels: int,
    delta: float = 0.05,
) -> FeatureWeights:
    """The probe of encoders (seeds, k, d) of inputs x = Mz, with M (seeds, d, d), for labels of norm 1 whose directions
    within shared and private features are random and of which ``private`` is the share on private ones."""
    if weights.shape[-1] != problem.dim or basis.shape[-2:] != (problem.dim, problem.dim):
        sizes = f"{tuple(weights.shape)} and {tuple(basis.shape)}"
        raise ValueError(f"encoder and basis must be of inputs of dimension {problem.dim}, not {sizes}")
    if not 0 <= private <= 1 or labels < 1:
        raise ValueError(f"a share in [0, 1] and at least one label are needed, not {private} and {labels}")
    found = gram(weights.double(), basis.double())
    own = problem.own(task)
    block = found[..., own, :][..., own]
    diagonal = block.diagonal(dim1=-2, dim2=-1)
    off = (block - torch.diag_embed(diagonal)).abs().amax((-2, -1))
    spurious = found.diagonal(dim1=-2, dim2=-1)[..., problem.features :]
    leakage = spurious.amax(-1) if problem.spurious else torch.zeros_like(off)
    norm = _predictor_norm(problem, block, private)
    leading = norm * (_spread(problem, found, own, task) / labels).sqrt()
    bound = leading.new_tensor([risk_bound(each, labels, delta=delta) for each in leading.flatten().tolist()])
    parts = diagonal[..., : problem.shared].mean(-1), diagonal[..., problem.shared :].mean(-1)
    return FeatureWeights(*parts, off, leakage, norm, leading, bound.view_as(leading))


def _predictor_norm(problem: LinearTasks, block: Tensor, private: float) -> Tensor:
    """√E‖u‖² of the smallest u with uᵀWM = u* on the task's features, over random directions of u*."""
    values, vectors = torch.linalg.eigh(block)
    real = values > REAL * values.amax(-1, keepdim=True)
    s, r = problem.shared, problem.relevant
    mass = torch.zeros(r, dtype=block.dtype, device=block.device)
    mass[:s], mass[s:] = (1 - private) / s, private / max(problem.private, 1)
    along = (vectors.square() * mass.unsqueeze(-1)).sum(-2)  # E of u* squared along each eigenvector
    squared = (along * torch.where(real, 1 / values, 0.0)).sum(-1)
    outside = torch.where(real, 0.0, along).sum(-1)
    return torch.where(outside > REAL, math.inf, squared.sqrt())


def _spread(problem: LinearTasks, found: Tensor, own: list[int], task: int) -> Tensor:
    """E‖φ(x)‖² on the task's data."""
    shared, private, spurious = problem.scales(task)
    diagonal = found.diagonal(dim1=-2, dim2=-1)
    parts = (
        (diagonal[..., own[: problem.shared]], shared),
        (diagonal[..., own[problem.shared :]], private),
        (diagonal[..., problem.features :], spurious),
    )
    return torch.stack([scale**2 * each.sum(-1) for each, scale in parts]).sum(0)
