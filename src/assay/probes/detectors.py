"""Which neurons detect which known feature, how strongly they answer, and who is wrong on which group of samples.

Weights (..., neurons, dim) and biases (..., neurons) of a first layer; directions (features, dim) are known features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from assay.methods._arrays import of_tensors
from assay.methods._checks import all_finite, number
from assay.methods._data import as_classes


def aligned_neurons(weights: Tensor, directions: Tensor, threshold: float | Tensor) -> Tensor:
    """Whether ⟨w, v⟩ ≥ threshold: (..., neurons, features)."""
    return weights @ directions.mT >= threshold


@of_tensors
def singleton_detectors(weights: Tensor, directions: Tensor, high: float, low: float) -> Tensor:
    """Neurons with ⟨w, v⟩ ≥ ``high`` on one direction and below ``low`` on all others: (..., neurons, features)."""
    number("low", low, most=high)
    all_finite("weights and directions", weights, directions)
    directions = directions.to(weights)
    scores = weights @ directions.mT
    return (scores >= high) & ((scores >= low).sum(-1, keepdim=True) <= 1)


@of_tensors
def detector_counts(detectors: Tensor) -> Tensor:
    """Detectors of each feature: (..., neurons, features) -> (..., features)."""
    return detectors.sum(-2)


@of_tensors
def responses(weights: Tensor, biases: Tensor, directions: Tensor) -> Tensor:
    """R(v) = Σ_r relu(⟨w_r, v⟩ + b_r): (..., features)."""
    all_finite("weights, biases and directions", weights, biases, directions)
    return torch.relu(weights @ directions.to(weights).mT + biases.unsqueeze(-1)).sum(-2)


@of_tensors
def response_ratio(answers: Tensor, numerator: Sequence[int], denominator: Sequence[int]) -> Tensor:
    """The mean response to one group of features over that to another: (..., features) -> (...)."""
    return answers[..., list(numerator)].mean(-1) / answers[..., list(denominator)].mean(-1)


@of_tensors
def group_errors(scores: Tensor, labels: Tensor, groups: Mapping[str, Tensor]) -> dict[str, float]:
    """The error on each group of samples, ties counted as errors: scores (n, classes), labels (n,), masks (n,).

    For an easy/hard split, or any other that a person knows of. A score of −∞ rules a class out; NaN is refused."""
    scores, labels = torch.as_tensor(scores), torch.as_tensor(labels)
    if scores.ndim != 2 or labels.shape != scores.shape[:1]:
        raise ValueError(f"scores are (n, classes) with n labels, not {tuple(scores.shape)} and {tuple(labels.shape)}")
    labels = as_classes(labels, len(scores)).to(scores.device)
    if count := int((scores.isnan() | (scores == torch.inf)).sum()):
        raise ValueError(f"scores must be finite or −∞, and {count} of their entries are not")
    own = scores.gather(1, labels.unsqueeze(1)).squeeze(1)
    others = scores.scatter(1, labels.unsqueeze(1), -torch.inf).amax(1)
    wrong = own <= others
    found = {}
    for name, rows in groups.items():
        if rows.shape != labels.shape or rows.dtype != torch.bool or not bool(rows.any()):
            raise ValueError(f"group {name!r} needs a mask over the {len(labels)} samples that picks at least one")
        found[name] = float(wrong[rows].float().mean())
    return found
