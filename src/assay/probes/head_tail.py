"""How good are frozen features for frequent and for rare classes? A linear probe and its head–tail gap.

Classes are ranked by how often they occurred in *pretraining*; the probe itself should be trained on balanced labels,
so that a gap speaks of the features and not of the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from assay.methods._checks import all_finite


@dataclass(frozen=True)
class HeadTail:
    """Accuracies in [0, 1]; ``gap`` is the mean accuracy of the head classes minus that of the tail classes (Δ₂₀)."""

    accuracy: float
    per_class: Tensor
    head: tuple[int, ...]
    tail: tuple[int, ...]

    @property
    def gap(self) -> float:
        return float(self.per_class[list(self.head)].mean() - self.per_class[list(self.tail)].mean())


def head_and_tail(counts: Sequence[int], share: float = 0.2) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The max(1, round(share · classes)) most and least frequent classes; among equals the lower index is more
    frequent."""
    if len(counts) < 2 or not 0 < share <= 0.5:
        raise ValueError("a gap needs two classes or more and a share in (0, 0.5]")
    ranked = sorted(range(len(counts)), key=lambda c: (-counts[c], c))
    size = max(1, round(share * len(counts)))
    return tuple(ranked[:size]), tuple(ranked[-size:])


def score_head_tail(predictions: Tensor, labels: Tensor, counts: Sequence[int], *, share: float = 0.2) -> HeadTail:
    """Overall and per-class accuracy and the gap of given predictions. Every class needs a test sample."""
    present = torch.bincount(labels, minlength=len(counts))
    if len(present) != len(counts) or bool((present == 0).any()):
        raise ValueError(f"the labels must be those of {len(counts)} classes, each with at least one test sample")
    right = (predictions == labels).double()
    per_class = (
        torch.zeros(len(counts), dtype=torch.double, device=labels.device).index_add_(0, labels, right) / present
    )
    return HeadTail(float(right.mean()), per_class.cpu(), *head_and_tail(counts, share))


def head_tail_probe(
    features: Tensor,
    labels: Tensor,
    test_features: Tensor,
    test_labels: Tensor,
    counts: Sequence[int],
    *,
    decay: float = 1e-3,
    iterations: int = 200,
    share: float = 0.2,
) -> HeadTail:
    """Fit a linear classifier on frozen features (n, dim), then score it on test features.

    Features are standardised by the training ones; a feature that is constant there is left out. Softmax regression
    with ``decay``/2 · ‖weights‖² is convex and is fitted by L-BFGS from zero, so that the result has no seed.
    ``counts`` are the classes' pretraining frequencies.
    """
    features, test_features = features.detach().float(), test_features.detach().float()
    all_finite("the training features", features)
    all_finite("the test features", test_features)
    # What follows takes gradients, also when it is called, or its labels were made, in inference mode.
    with torch.inference_mode(False), torch.enable_grad():
        x, test_x = _standardised(features, test_features)
        weights, bias = _fitted(x, labels.clone(), len(counts), decay, iterations)
        predictions = (test_x @ weights.mT + bias).argmax(1)
    return score_head_tail(predictions, test_labels, counts, share=share)


def _standardised(features: Tensor, test_features: Tensor) -> tuple[Tensor, Tensor]:
    """Both by mean and spread of the first. A feature is constant when its own values differ by no more than rounding:
    another one of large values must not decide that."""
    mean, scale = features.mean(0), features.std(0)
    rounding = 4 * torch.finfo(features.dtype).eps * features.abs().amax(0)
    scale = torch.where(scale > rounding, scale, torch.inf)  # a constant feature says nothing
    return (features - mean) / scale, (test_features - mean) / scale


def _fitted(x: Tensor, labels: Tensor, classes: int, decay: float, iterations: int) -> tuple[Tensor, Tensor]:
    """Weights (classes, dim) and bias (classes,) of the regression."""
    weights = torch.zeros(classes, x.shape[1], device=x.device, requires_grad=True)
    bias = torch.zeros(classes, device=x.device, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights, bias], max_iter=iterations, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(x @ weights.mT + bias, labels) + decay / 2 * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weights.detach(), bias.detach()
