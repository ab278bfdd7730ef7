"""A contrastive update of a linear encoder on the target's data alone, near where it was."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.training import Seeds

from ..learners import LinearPretraining, near
from ..problem import LinearTasks


def updated(
    problem: LinearTasks, seeds: Seeds, start: Tensor, basis: Tensor, radius: float, *, steps: int, batch: int
) -> Tensor:
    """W (seeds, k, d) that lowers the contrastive loss of task 0 within ``radius`` of the start (Frobenius), spectral
    norm at most 1."""
    recipe = LinearPretraining(steps, batch, rate=1.0)
    name = "update"  # the same batches for every radius
    return recipe.descend(problem, seeds, start, basis, lambda w: near(w, start, radius), task=0, name=name)


def block_risk(gram: Tensor, points: Tensor, truth: Tensor) -> Tensor:
    """Mean squared error of the smallest interpolant for labels truthᵀz, on points (seeds, draws, m, r), truth (seeds,
    draws, r). It depends on the encoder by the Gram matrix (seeds, r, r) of the task's features alone."""
    left, sizes, _ = torch.linalg.svd(gram)
    root = left * sizes.clamp(min=0).sqrt().unsqueeze(-2)  # Gram = root rootᵀ
    features = points @ root.unsqueeze(1)
    answers = torch.einsum("sdmr,sdr->sdm", points, truth)
    found = (torch.linalg.pinv(features) @ answers.unsqueeze(-1)).squeeze(-1)
    back = torch.einsum("srk,sdk->sdr", root, found)
    return (back - truth).square().sum(-1).mean(1)
