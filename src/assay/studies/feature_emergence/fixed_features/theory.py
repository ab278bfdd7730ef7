"""What fixed features cannot: lower bounds on their loss, queries without structure, and reference accuracies."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def fixed_feature_bound(p_o: float, N: int, B: float, k: int, D: int) -> float:
    """Some member of the family costs any fixed N features of norm-B weights at least p_o(1 − √(2N)·B/2^k)."""
    if k % 2 == 0 or not 3 < k <= D / 16:
        raise ValueError(f"the bound is about odd k with 3 < k ≤ D/16, not k = {k}, D = {D}")
    return float(p_o * (1 - math.sqrt(2 * N) * B / 2**k))


def bessel_bound(p_o: float, N: int, B: float, k: int, D: int) -> float:
    """The sharper bound p_o(1 − B√(N/C(D,k))), from Bessel's inequality over the parities of k of D bits."""
    return p_o * (1 - B * math.sqrt(N / math.comb(D, k)))


def bessel_average(features: Tensor, parities: Tensor) -> Tensor:
    """The mean over parities of ‖E[χ_A Ψ]‖², which Bessel bounds by N/(number of parities).

    ``features`` (inputs, N) with entries in [−1, 1] over all inputs, ``parities`` (inputs, sets) with entries ±1.
    """
    if features.abs().max() > 1:
        raise ValueError("the bound is about features in [−1, 1]")
    return (parities.mT @ features / len(features)).square().sum(1).mean()


def query_bound(D: int, k: int) -> float:
    """Statistical queries (or 1/tolerance) needed without structure: ½·C(D,k)^{1/3}."""
    return float(0.5 * math.comb(D, k) ** (1 / 3))


def count_threshold_accuracy(law: Tensor, labels: Tensor) -> float:
    """The best accuracy of a threshold on the number of relevant patterns: what the best linear predictor reaches."""
    best = 0.0
    for cut in range(len(law) + 1):
        guess = torch.where(torch.arange(len(law)) >= cut, 1.0, -1.0)
        right = float(law[guess == labels].sum())
        best = max(best, right, 1 - right)
    return best


def structured_part_accuracy(p_o: float) -> float:
    """The accuracy of a predictor that solves the structured component and guesses on the uniform one."""
    return 1 - p_o / 2
