"""Bounds on gradient descent that have explicit constants: frozen features, drift of both layers, generalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def smoothness(features: Tensor, curvature: float) -> float:
    """L_s of the mean loss in the head: curvature × the largest eigenvalue of the features' second moment."""
    moment = features.T @ features / len(features)
    return curvature * float(torch.linalg.eigvalsh(moment)[-1])


def descent_bound(start: Tensor, target: Tensor, rate: float, steps: int) -> float:
    """L(a_T) − L(a*) ≤ ‖a_1 − a*‖²/(2ηT) for convex losses, η ≤ 1/L_s and any a*."""
    return float((start - target).square().sum()) / (2 * rate * steps)


def best_bound(losses: Sequence[float], sizes: Sequence[float], rate: float, steps: int) -> float:
    """min over a of L(a) + ‖a‖²/(2ηT): what ``descent_bound`` says of L(a_T), from 0, with its best comparator. Given
    are the losses L(a) and the squared sizes ‖a‖² of some."""
    return min(loss + size / (2 * rate * steps) for loss, size in zip(losses, sizes, strict=True))


def regret_bound(start: Tensor, target: Tensor, slopes: Tensor, rate: float) -> float:
    """(1/T)Σ[f_t(θ_t) − f_t(θ*)] ≤ ‖θ*‖²/(2ηT) + ‖θ_1‖·(1/T)Σ‖∇_t‖ + (η/T)Σ‖∇_t‖² for online descent on convex f_t
    from any θ_1 against any θ*; ``slopes`` (T, size) are the gradients ∇_t of f_t at θ_t."""
    norms = slopes.norm(dim=-1)
    far = float(target.square().sum()) / (2 * rate * len(slopes))
    return far + float(start.norm() * norms.mean()) + rate * float(norms.square().mean())


def first_output_bound(start_weights: Tensor, threshold: float, input_norm: float, rate: float, slope: float) -> float:
    """‖a^(1)‖_∞ ≤ η^(1)|ℓ'(0)|(max_i‖w_i^(0)‖·E‖x‖ + b̃) after a first step that forgets a^(0)."""
    return rate * abs(slope) * (float(start_weights.norm(dim=-1).max()) * input_norm + threshold)


def generalisation_bound(head_norm: float, weights: Tensor, thresholds: Tensor, largest: float, samples: int) -> float:
    """Twice √(B_a2²(‖W‖_F²·B_x² + ‖b‖²)/n), the Rademacher bound after symmetrisation."""
    size = float(weights.square().sum()) * largest**2 + float(thresholds.square().sum())
    return 2 * head_norm * math.sqrt(size / samples)


def drift_envelope(
    outputs: Tensor, reach: Tensor, input_norm: float, rate: float, steps: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Bounds on |a_i| and ‖w_i − w_i^(1)‖ after 0, 1, … steps of a 1-Lipschitz loss: |a| ← |a| + u·drift + η·Z and
    drift ← drift + u·|a|, with u = η·B_x1, Z_i = B_x1‖w_i^(1)‖ + b̃."""
    a, drift = outputs.abs(), torch.zeros_like(outputs)
    found_a, found_drift = [a], [drift]
    u = rate * input_norm
    for _ in range(steps):
        a, drift = a + u * drift + rate * reach, drift + u * a
        found_a.append(a)
        found_drift.append(drift)
    return found_a, found_drift


def flip_bound(drift: Tensor, largest: float, deviation: float = 1.0) -> Tensor:
    """The share of a neuron's gates that can differ after its weights moved by ``drift`` = ‖Δw‖/‖w‖, for inputs of norm
    up to ``largest`` with Gaussian noise: √(2/π)·B_x·drift/σ. A gate flips only where |⟨ŵ, x⟩ − b/‖w‖| ≤ drift·‖x‖, and
    the projection ⟨ŵ, x⟩ has a density of at most 1/(σ√(2π))."""
    return math.sqrt(2 / math.pi) * largest * drift / deviation


def second_order_recursion(rho: float, beta: float, first: tuple[float, float], n: int) -> float:
    """h(n) of h(n + 2) = 2h(n + 1) − (1 − ρ²)h(n) + β in closed form: −β/ρ² + c_1(1 − ρ)^n + c_2(1 + ρ)^n."""
    shifted = [value + beta / rho**2 for value in first]
    c2 = (shifted[1] - (1 - rho) * shifted[0]) / (2 * rho)
    return float(-beta / rho**2 + (shifted[0] - c2) * (1 - rho) ** n + c2 * (1 + rho) ** n)
