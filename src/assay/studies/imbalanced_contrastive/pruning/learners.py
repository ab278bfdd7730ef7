"""The constructed state of the pruning experiment: pure neurons, of which the rare features' are the smallest, and what
becomes of them."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.probes.specialisation import lucky_neurons
from assay.training import Seeds

from ..learners import Encoders, aligned, nan_if_diverged
from ..problem import TokenPairs


def constructed_start(
    problem: TokenPairs, cells: int, seeds: Seeds, *, per_feature: int, scale: float, rare_share: float, bias: float
) -> Encoders:
    """A stage-three state: ``per_feature`` pure neurons per feature, those of rare features ``rare_share`` as large."""
    sizes = torch.full((problem.features,), scale)
    sizes[problem.majority :] *= rare_share
    rows = torch.zeros(problem.features * per_feature, problem.dim)
    rows[:, : problem.features] = torch.diag(sizes).repeat_interleave(per_feature, 0)
    weights = rows.to(seeds.device, seeds.dtype).expand(len(seeds), cells, -1, -1).contiguous()
    return Encoders(weights, bias * torch.linalg.vector_norm(weights, dim=-1), problem.tokens)


def minority_share(mask: Tensor | None, problem: TokenPairs) -> Tensor:
    """Of the pruned neurons of a constructed state, the share that belongs to rare features; NaN where none is."""
    assert mask is not None
    pruned = 1 - mask
    rare = torch.unflatten(pruned, -1, (problem.features, -1))[..., problem.majority :, :].sum((-1, -2))
    return rare / pruned.sum(-1)


def own_neurons(weights: Tensor, problem: TokenPairs) -> Tensor:
    """How many neurons have a rare feature and no other, by the probe for trained networks: (seeds, cells); NaN where
    training diverged."""
    cosines = aligned(weights, problem.features)
    own = lucky_neurons(cosines) & (cosines.argmax(-1) >= problem.majority)
    return own.sum(-1) + nan_if_diverged(weights)
