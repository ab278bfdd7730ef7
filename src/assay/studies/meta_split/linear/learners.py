"""The linear contrast: ridge regression inside, least squares outside, with and without a split.

Earlier theory has task parameters around a centroid w: inside, A(w) = argmin_θ ‖y − Xθ‖²/n + λ‖θ − w‖²; outside, the
w of least norm that minimises the squared outer error. In the realisable case it finds no split to be better.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..problem import Tasks


def _ridge_map(inputs: Tensor, inner: slice, outer: slice, ridge: float) -> Tensor:
    """The outer error is linear in the residuals y − Xw: rows of this (seeds, tasks, outer samples, samples)."""
    gram = inputs @ inputs.mT
    samples = inputs.shape[-2]
    eye = torch.eye(samples, dtype=inputs.dtype, device=inputs.device)
    count = len(range(*inner.indices(samples)))
    inverse = torch.linalg.inv(gram[..., inner, inner] + count * ridge * eye[:count, :count])
    rows = eye[outer].expand(*gram.shape[:2], -1, -1).clone()
    rows[..., inner] -= gram[..., outer, inner] @ inverse
    return rows


def centroid(tasks: Tasks, split: str, ridge: float) -> Tensor:
    """w of least norm with the least squared outer error: (seeds, 2·dim). With fewer equations than dimensions the
    error is zero. ``support only`` has both loops on the support half: no split, and as many equations as with one."""
    inputs = tasks.inputs.flatten(3)
    cut = tasks.support
    inner, outer = {
        "train-train": (slice(None), slice(None)),
        "train-validation": (slice(0, cut), slice(cut, None)),
        "support only": (slice(0, cut), slice(0, cut)),
    }[split]
    rows = _ridge_map(inputs, inner, outer, ridge)
    equations = (rows @ inputs).flatten(1, 2)
    targets = (rows @ tasks.labels.unsqueeze(-1)).flatten(1)
    dual: Tensor = torch.linalg.solve(equations @ equations.mT, targets.unsqueeze(-1))
    return (equations.mT @ dual).squeeze(-1)


def mean_squared_error(weights: Tensor, unseen: Tasks) -> Tensor:
    """Mean squared error of ⟨w, x⟩ against y on new tasks, un-adapted: (seeds,)."""
    guesses = (unseen.inputs.flatten(3) @ weights.reshape(len(weights), 1, -1, 1)).squeeze(-1)
    return (guesses - unseen.labels).square().mean((1, 2))
