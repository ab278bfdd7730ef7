"""A linear head by ridge regression, its penalty chosen by leaving one out: exact, quick, and without a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from assay.methods._checks import all_finite, number
from assay.methods._samples import as_classes

from .representation import LinearHead, scaling_of

PENALTIES = tuple(10.0 ** (k / 2) for k in range(-8, 7))


def ridge_head(
    features: Any, labels: Any, *, scaling: str = "rescaled", penalties: Sequence[float] = PENALTIES
) -> LinearHead:
    """Least squares to the classes' indicators, with an intercept, on features (n, dim).

    Of ``penalties``, in units of the features' mean square, the one with the least squared error on points left out one
    by one is taken, the largest among equals; one decomposition gives all these errors. Features are centred and
    divided by one common number ("rescaled"), which keeps their weights relative to each other: a feature that a
    representation has made small stays hard to use. "standardized" gives all features the same weight.
    """
    x = torch.as_tensor(features).detach()
    if x.ndim != 2:
        raise ValueError(f"a head needs features (n, dim), not {tuple(x.shape)}")
    all_finite("features", x)
    number("the smallest of penalties", min(penalties, default=0), above=0)
    classes, places = torch.unique(as_classes(labels, len(x)).to(x.device), return_inverse=True)
    if len(classes) < 2:
        raise ValueError("a head needs samples of at least two classes")
    shift, scale = scaling_of(x, scaling)
    inputs = (x.double() - shift) / scale
    centre = inputs.mean(0)
    targets = torch.nn.functional.one_hot(places).double()
    bias = targets.mean(0)
    left, sizes, right = torch.linalg.svd(inputs - centre, full_matrices=False)
    projected = left.T @ (targets - bias)  # (rank, classes)
    unit = sizes.square().sum() / len(x)
    chosen = min(
        sorted(penalties, reverse=True), key=lambda p: _left_out(left, sizes, projected, targets - bias, p * unit)
    )
    weight = (right.T @ (projected * (sizes / (sizes.square() + chosen * unit)).unsqueeze(1))).T
    return LinearHead(weight, bias - weight @ centre, shift, scale, classes)


def _left_out(left: Tensor, sizes: Tensor, projected: Tensor, targets: Tensor, penalty: Tensor) -> float:
    """Σ over points of the squared error at each when it is left out: its residual over 1 − its leverage."""
    shrink = sizes.square() / (sizes.square() + penalty)
    residual = targets - left @ (projected * shrink.unsqueeze(1))
    leverage = 1 / len(targets) + (left.square() * shrink).sum(1)
    return float((residual / (1 - leverage).clamp(min=1e-12).unsqueeze(1)).square().sum())
