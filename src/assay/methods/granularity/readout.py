"""Coarse scores from a classifier's fine ones, without training anything."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.methods._arrays import of_tensors


@of_tensors
def max_readout(logits: Tensor, fine_to_coarse: Tensor) -> Tensor:
    """F̂_y = max over the fine classes of y: (..., fine) -> (..., coarse). −inf for a coarse class without one.

    Its argmax is the coarse class of the best fine class. Count a tie between coarse classes as an error.
    """
    return _over_members(logits, fine_to_coarse, lambda members: members.amax(-1))


@of_tensors
def sum_readout(logits: Tensor, fine_to_coarse: Tensor) -> Tensor:
    """log Σ e^logit over the fine classes of y: the coarse log-probabilities up to a constant."""
    return _over_members(logits, fine_to_coarse, lambda members: members.logsumexp(-1))


def strictly_right(scores: Tensor, labels: Tensor) -> Tensor:
    """Whether the right class is strictly above all others: (n, classes), (n,) -> (n,). Ties, NaN and classes without
    a score are errors."""
    places = labels.clamp(max=scores.shape[-1] - 1).unsqueeze(-1)
    own = scores.gather(-1, places).squeeze(-1)
    others = scores.scatter(-1, places, -torch.inf).amax(-1)
    return (labels < scores.shape[-1]) & (own > others)


def _over_members(logits: Tensor, fine_to_coarse: Tensor, pool) -> Tensor:  # type: ignore[no-untyped-def]
    if fine_to_coarse.shape != logits.shape[-1:]:
        raise ValueError(f"{logits.shape[-1]} fine logits need a coarse class each, not {tuple(fine_to_coarse.shape)}")
    coarse = int(fine_to_coarse.max()) + 1
    scores = [
        pool(logits[..., fine_to_coarse == y])
        if bool((fine_to_coarse == y).any())
        else torch.full_like(logits[..., 0], -torch.inf)
        for y in range(coarse)
    ]
    return torch.stack(scores, -1)
