"""The constructed head, its explicit error bound, upper bounds on OPT, and the size of the proven hyper-parameters."""

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


@dataclass(frozen=True)
class Requirements:
    """What the main theorem asks for, with all hidden constants set to 1: for scaling, never as settings."""

    threshold: float  # b̃
    neurons: float  # m
    samples: float  # n
    rate: float  # η
    steps: float  # T

    @classmethod
    def of(
        cls,
        *,
        share: float,  # p
        floor: float,  # B_G
        terms: int,  # r
        outputs: tuple[float, float],  # B_a1, B_a2
        knots: float,  # B_b
        inputs: tuple[float, float, float],  # B_x1, B_x2, B_x
        error: float,  # ε
        failure: float = 0.1,  # δ
        slope: float = 1.0,  # |ℓ'(0)|
    ) -> Requirements:
        (a1, a2), (x1, x2, x) = outputs, inputs
        threshold = floor**0.25 * a2 * knots**0.75 / math.sqrt(terms * a1)
        m = (terms * a1 * x1 * math.sqrt(knots / floor)) ** 4 / (share * error**4)
        m += failure**-0.5 + math.log(terms / failure) ** 2 / share
        mp = m * share
        pull = math.sqrt(terms) * a2 * knots * x1 / mp**0.25 + m * threshold
        push = math.sqrt(math.log(m)) * x1 * mp**0.25 / math.sqrt(knots * floor) + 1
        rate = error / (pull * push)
        steps = 1 / (rate * x1 * mp**0.25)
        first = m * x * a2**2 * math.sqrt(knots) * math.sqrt(mp) * math.log(m) / (error * terms * a1 * math.sqrt(floor))
        second = x / math.sqrt(x2) + math.log(steps * m / (share * failure)) + (1 + 1 / floor) * math.sqrt(x2) / slope
        return cls(threshold, m, first**3 + second**3, rate, steps)
