"""The constructed head, its explicit error bound, and upper bounds on OPT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from assay.methods.gradient_bounds import FeatureConstants, GradientRequirements

from ..problem import GaussianMixture
from ..theory import cosines


@dataclass(frozen=True)
class Construction:
    """A sparse head on stepped neurons that imitates g* = Σ_j a_j·max(0, ⟨D_j, x⟩ − b_j)."""

    outputs: Tensor  # (neurons,)
    tolerance: float  # ε_a as realised: the largest |‖w_i‖·b_j/b̃ − 1| in a set Λ_j
    width: float  # γ as realised: the largest 1 − cosine
    served: Tensor  # (terms,): whether the set Λ_j has a neuron; of the other terms the construction knows nothing

    @property
    def support(self) -> int:
        return int((self.outputs != 0).sum())

    @property
    def empty(self) -> int:
        return int((~self.served).sum())

    def bound(self, largest: float, input_norm: float) -> float:
        """E|g_ã − g*| ≤ r·B_a1·B_x1·(ε_a + √(2γ)) for the r terms of g* that are served, all constants explicit."""
        return int(self.served.sum()) * largest * input_norm * (self.tolerance + math.sqrt(2 * self.width))


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
    outputs = weights.new_zeros(len(weights), dtype=torch.float64)
    widest, farthest = 0.0, 0.0
    served = torch.zeros(len(directions), dtype=torch.bool)
    for j in range(len(directions)):
        chosen = (near[:, j] > 1 - cone) & (off <= tolerance)
        count = int(chosen.sum())
        if count == 0:
            continue
        served[j] = True
        outputs[chosen] += float(heights[j]) * knot / (count * threshold)
        widest = max(widest, float(1 - near[chosen, j].min()))
        farthest = max(farthest, float(off[chosen].max()))
    return Construction(outputs, farthest, widest, served)


def components_of(mixture: GaussianMixture) -> tuple[Tensor, Tensor]:
    """Directions and labels of all components, antipodal ones apart."""
    unit: Tensor = mixture.means / mixture.means.norm(dim=1, keepdim=True)
    return unit, mixture.component_labels


def least_loss_without(weights: Sequence[float], seen: int) -> float:
    """What no network on the ``seen`` first pairs of XOR axes can stay below, whatever it computes: the weight of the
    other pairs. On their components its output has one law for both labels, and (1 − g)₊ + (1 + g)₊ ≥ 2."""
    return sum(weights[seen:]) / sum(weights)


def head_cost(constants: FeatureConstants, asked: GradientRequirements) -> float:
    """‖ã‖²/(ηT), what descent over T steps with the rate η pays for reaching a head of the norm that the existence
    lemma allows, B_a2·B_b/(b̃·(mp)^(1/4)), at the sizes that the main theorem asks for."""
    largest = constants.output_norm * constants.largest_knot
    size = largest / (asked.threshold * math.pow(asked.neurons * constants.share, 0.25))
    return size**2 / (asked.rate * asked.steps)


@dataclass(frozen=True)
class SmallNetwork:
    """A network of few neurons out of a dictionary: its outputs, 0 where a neuron is left out, and its mean hinge loss
    on the points that it was fitted to."""

    outputs: np.ndarray  # (neurons of the dictionary,): axis by axis, first +z, then −z, each with all knots
    knots: np.ndarray
    loss: float

    def loss_on(self, projections: np.ndarray, labels: np.ndarray) -> float:
        """Its mean hinge loss on other points: unlike that on its own, it estimates the loss of the population, which
        no network within the limits can have below OPT."""
        return float(np.maximum(1 - labels * (_dictionary(projections, self.knots) @ self.outputs), 0).mean())


def _dictionary(projections: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """max(0, ±z_j − b) for every axis j, sign and knot b, in this order: (n, 2·axes·knots)."""
    signed = np.concatenate([projections, -projections], 1)
    neurons: np.ndarray = np.maximum(signed[:, :, None] - knots, 0)
    return neurons.reshape(len(projections), -1)


def small_opt_upper_bound(
    projections: np.ndarray, labels: np.ndarray, knots: np.ndarray, *, terms: int, largest: float, norm: float
) -> SmallNetwork:
    """A network that bounds OPT of the induced networks from above: Σ a_i·max(0, ±z_j − b) with at most ``terms`` r of
    the given neurons, |a_i| ≤ B_a1 and ‖a‖ ≤ B_a2, fitted to the least mean hinge loss on these points.

    Neurons are added one by one, each the one along which the loss falls fastest, and all outputs are then fitted anew.
    The network found keeps every limit, so that its loss on points that it was not fitted to is an upper bound, however
    good the choice of neurons."""
    if terms < 1:
        raise ValueError(f"a network has one neuron or more, not {terms}")
    if largest < 0 or norm < 0:
        raise ValueError(f"limits of outputs are 0 or more, not {largest:g} and {norm:g}")
    features = _dictionary(projections, knots)
    outputs, chosen = np.zeros(features.shape[1]), list[int]()
    best = SmallNetwork(outputs, knots, 1.0)
    weights = np.full(len(labels), 1 / len(labels))  # of the samples in the slope of the loss
    for _ in range(min(terms, features.shape[1])):
        slopes = np.abs((weights * labels) @ features)
        slopes[chosen] = 0
        if slopes.max() <= 1e-12:
            break
        chosen.append(int(slopes.argmax()))
        fitted, weights = _fit_within(features[:, chosen], labels, largest, norm)
        outputs = np.zeros(features.shape[1])
        outputs[chosen] = fitted
        loss = float(np.maximum(1 - labels * (features @ outputs), 0).mean())
        if loss < best.loss:
            best = SmallNetwork(outputs, knots, loss)
    return best


def _fit_within(features: np.ndarray, labels: np.ndarray, largest: float, norm: float) -> tuple[np.ndarray, np.ndarray]:
    """Outputs of least mean hinge loss with |a_i| ≤ ``largest`` and ‖a‖ ≤ ``norm``, and each sample's weight in the
    slope of that loss. The ball is cut out by planes: a linear program whose solution lies outside gets the plane that
    touches the ball below it, until the solution is within a millionth, which shrinking it takes off."""
    from scipy.optimize import linprog

    n, size = features.shape
    costs = np.concatenate([np.zeros(size), np.full(n, 1 / n)])
    rows = np.concatenate([-labels[:, None] * features, -np.eye(n)], 1)
    sides = -np.ones(n)
    limits = [(-largest, largest)] * size + [(0, None)] * n
    for _ in range(200):
        found = linprog(costs, A_ub=rows, b_ub=sides, bounds=limits, method="highs")
        outputs = found.x[:size]
        length = float(np.linalg.norm(outputs))
        if length <= norm * (1 + 1e-6) or norm == 0:
            break
        rows = np.concatenate([rows, np.concatenate([outputs / length, np.zeros(n)])[None]])
        sides = np.append(sides, norm)
    shrunk = outputs * min(1.0, norm / length) if length else outputs
    return shrunk, -found.ineqlin.marginals[:n]
