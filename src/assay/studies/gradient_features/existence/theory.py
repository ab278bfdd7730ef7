"""The constructed head, its explicit error bound, and upper bounds on OPT."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..problem import GaussianMixture
from ..theory import cosines


@dataclass(frozen=True)
class Construction:
    """A sparse head on stepped neurons that imitates g* = Σ_j a_j·max(0, ⟨D_j, x⟩ − b_j)."""

    outputs: Tensor  # (neurons,)
    tolerance: float  # ε_a as realised: the largest |‖w_i‖·b_j/b̃ − 1| in a set Λ_j
    width: float  # γ as realised: the largest 1 − cosine
    empty: int  # sets Λ_j without a neuron; the construction failed when there are any

    @property
    def support(self) -> int:
        return int((self.outputs != 0).sum())

    def bound(self, terms: int, largest: float, input_norm: float) -> float:
        """E|g_ã − g*| ≤ r·B_a1·B_x1·(ε_a + √(2γ)), all constants explicit."""
        return terms * largest * input_norm * (self.tolerance + math.sqrt(2 * self.width))


def construct(
    weights: Tensor,
    threshold: float,
    directions: Tensor,
    heights: Tensor,
    knot: float,
    *,
    cone: float,
    tolerance: float,
) -> Construction:
    """Weights (neurons, dim) with one threshold b̃ > 0; oracle terms along ``directions`` with outputs ``heights`` and
    the common threshold ``knot``. Λ_j holds the neurons in the one-sided cone of D_j whose switch is near the knot."""
    near = cosines(weights, directions)  # (neurons, terms)
    off = (weights.norm(dim=-1) * knot / threshold - 1).abs()
    outputs = torch.zeros(len(weights), dtype=torch.float64)
    widest, farthest, empty = 0.0, 0.0, 0
    for j in range(len(directions)):
        chosen = (near[:, j] > 1 - cone) & (off <= tolerance)
        count = int(chosen.sum())
        if count == 0:
            empty += 1
            continue
        outputs[chosen] += float(heights[j]) * knot / (count * threshold)
        widest = max(widest, float(1 - near[chosen, j].min()))
        farthest = max(farthest, float(off[chosen].max()))
    return Construction(outputs, farthest, widest, empty)


def opt_upper_bound(projections: np.ndarray, labels: np.ndarray, knots: np.ndarray, largest: float) -> float:
    """An upper bound on OPT: the least mean hinge loss of Σ a_i·max(0, ±z_j − b) with |a_i| ≤ B_a1 over the given
    projections z (n, axes) and knots b, a linear program."""
    from scipy.optimize import linprog

    signed = np.concatenate([projections, -projections], 1)
    features = np.maximum(signed[:, :, None] - knots, 0).reshape(len(labels), -1)
    n, size = features.shape
    # Variables: outputs a, then slacks s ≥ max(0, 1 − y·g(x)).
    costs = np.concatenate([np.zeros(size), np.full(n, 1 / n)])
    rows = np.concatenate([-labels[:, None] * features, -np.eye(n)], 1)
    limits = [(-largest, largest)] * size + [(0, None)] * n
    found = linprog(costs, A_ub=rows, b_ub=-np.ones(n), bounds=limits, method="highs")
    return float(found.fun)


def components_of(mixture: GaussianMixture) -> tuple[Tensor, Tensor]:
    """Directions and labels of all components, antipodal ones apart."""
    unit: Tensor = mixture.means / mixture.means.norm(dim=1, keepdim=True)
    return unit, mixture.component_labels
