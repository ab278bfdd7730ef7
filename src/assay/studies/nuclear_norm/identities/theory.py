"""Identities of the nuclear norm on which the method rests, to be checked on random matrices."""

from __future__ import annotations

import torch
from torch import Tensor


def subgradient(features: Tensor) -> Tensor:
    """U·Vᵀ of (..., rows, dim) at full rank: the gradient of the sum of singular values."""
    left, _, right = torch.linalg.svd(features, full_matrices=False)
    product: Tensor = left @ right
    return product


def norm_by_gram(features: Tensor) -> Tensor:
    """The sum of singular values of (..., rows, dim) as roots of the smaller Gram matrix's eigenvalues."""
    wide = features if features.shape[-2] <= features.shape[-1] else features.mT
    total: Tensor = torch.linalg.eigvalsh(wide @ wide.mT).clamp(min=0).sqrt().sum(-1)
    return total


def least_norm(inputs: Tensor, classifier: Tensor, head: Tensor) -> Tensor:
    """min ‖XAᵀ‖_* over all extractors A with Aᵀh = v, for one logit: ‖Xv‖/‖h‖. All arguments are stacked."""
    lengths: Tensor = (inputs @ classifier.unsqueeze(-1)).squeeze(-1).norm(dim=-1) / head.norm(dim=-1)
    return lengths


def rank_one_extractor(classifier: Tensor, head: Tensor) -> Tensor:
    """h·vᵀ/‖h‖², which attains it."""
    return head.unsqueeze(-1) * classifier.unsqueeze(-2) / head.square().sum(-1)[..., None, None]


def feasible_extractor(classifier: Tensor, head: Tensor, anything: Tensor) -> Tensor:
    """Any matrix changed as little as it takes to meet Aᵀh = v."""
    off = classifier - (head.unsqueeze(-2) @ anything).squeeze(-2)
    return anything + rank_one_extractor(off, head)


def printed_stable_rank(features: Tensor) -> Tensor:
    """‖F‖_F²/‖F‖₂ as the source prints it, which grows with the scale of the features."""
    values = torch.linalg.svdvals(features)
    ratio: Tensor = values.square().sum(-1) / values[..., 0]
    return ratio
