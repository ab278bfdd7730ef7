"""Targets of a cross-entropy, refused in words where torch would stop at an index or at a type."""

from __future__ import annotations

import torch
from torch import Tensor

LEFT_ASIDE = -100  # what torch's cross-entropy leaves out


def class_targets(labels: Tensor, logits: Tensor) -> Tensor:
    """For logits (n, classes) the classes (n,) as int64, from any type of number, −100 for samples that are left aside;
    probabilities (n, classes) stay as they are. What belongs to logits of another shape is left to the loss."""
    if logits.ndim != 2:
        return labels
    if labels.shape == logits.shape and labels.is_floating_point():
        return labels
    if labels.ndim != 1:
        shapes = f"({len(logits)},) or ({len(logits)}, {logits.shape[1]})"
        raise ValueError(f"labels must be classes or probabilities of each class, {shapes}, not {tuple(labels.shape)}")
    if labels.is_floating_point() and not bool((labels == labels.round()).all()):
        raise ValueError("labels must be whole numbers, the classes counted from 0; for real targets give prediction")
    found = labels.long()
    known = (found == LEFT_ASIDE) | ((found >= 0) & (found < logits.shape[1]))
    if not bool(known.all()):
        wrong = int(found[~known][0])
        raise ValueError(
            f"labels must lie in 0 to {logits.shape[1] - 1} for {logits.shape[1]} logits, and one is {wrong}"
        )
    if not bool((found != LEFT_ASIDE).any()):
        raise ValueError(f"every label of the batch is {LEFT_ASIDE}, so that nothing is left to predict")
    return found


def as_labels(labels: object, device: torch.device) -> Tensor:
    """A tensor of numbers on the device; integers as int64."""
    try:
        found = torch.as_tensor(labels).to(device)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise ValueError(f"labels must be numbers, one for each sample, and these are not: {labels!r:.60}") from problem
    if not found.ndim:
        raise ValueError("labels must be (n,), one for each sample, and this is a single number")
    return found if found.is_floating_point() else found.long()
