"""Gradient features: the simplified gradient, cones around directions, and how much of the initial weights they catch.

A neuron is max(0, ⟨w, x⟩ − b), with a minus before its threshold b.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .problem import GaussianMixture, LinearData

_CHUNK = 4000  # samples at a time: gates and inputs stay within the cache


def simplified_gradient(inputs: Tensor, labels: Tensor, weights: Tensor, thresholds: Tensor) -> Tensor:
    """G(w, b) = mean of y·x·1{⟨w, x⟩ > b} over the samples: (seeds, neurons, dim). For a network with zero output its
    gradient in neuron i is ℓ'(0)·a_i·G(w_i, b_i)."""
    total = torch.zeros_like(weights)
    for start in range(0, inputs.shape[1], _CHUNK):
        x, y = inputs[:, start : start + _CHUNK], labels[:, start : start + _CHUNK]
        active = (x @ weights.mT > thresholds.unsqueeze(1)).to(x.dtype)
        total += (active * y.unsqueeze(-1)).mT @ x
    return total / inputs.shape[1]


def mixture_gradient(
    mixture: GaussianMixture, weights: Tensor, thresholds: Tensor, spread: Tensor | float = 1.0
) -> Tensor:
    """G(w, b) of a Gaussian mixture in expectation: Σ_j p_j y_j [Φ(α_j)μ_j + σ_jφ(α_j)ŵ], with the arguments
    α_j = (⟨w, μ_j⟩ − b)/(σ_j‖w‖); σ_j is ``spread`` (components,) times the mixture's own deviation."""
    means, signed = mixture.means.to(weights), (mixture.weights * mixture.component_labels).to(weights)
    norms = weights.norm(dim=-1, keepdim=True)
    alpha = (weights @ means.T - thresholds.unsqueeze(-1)) / (mixture.deviation * norms * spread)  # (…, components)
    density = torch.exp(-alpha.square() / 2) / math.sqrt(2 * math.pi)
    along = mixture.deviation * (density @ (signed * spread)).unsqueeze(-1) / norms
    found: Tensor = (torch.special.ndtr(alpha) * signed) @ means + along * weights
    return found


def cosines(vectors: Tensor, directions: Tensor) -> Tensor:
    """(…, neurons, directions); a vector of norm 0 has no direction: its cosines are 0, and it lies in no cone."""
    norms = vectors.norm(dim=-1, keepdim=True)
    unit = directions / directions.norm(dim=-1, keepdim=True)
    found: Tensor = (vectors @ unit.to(vectors).mT) / norms.clamp(min=torch.finfo(vectors.dtype).tiny)
    return found


def in_cone(vectors: Tensor, directions: Tensor, width: float, floor: float = 0.0) -> Tensor:
    """Whether |⟨v, D⟩| > (1 − γ)‖v‖ and ‖v‖ ≥ B_G: (…, neurons, directions). The cone has two sides and excludes 0."""
    if not 0 < width < 1:
        raise ValueError(f"a cone's width γ lies between 0 and 1, and {width:g} does not")
    inside: Tensor = cosines(vectors, directions).abs() > 1 - width
    strong: Tensor = vectors.norm(dim=-1, keepdim=True) >= floor
    return inside & strong


def unit_vectors(vectors: Tensor) -> Tensor:
    """The directions of vectors (…, dim). Where ``cosines`` lets a dead neuron lie in no cone, this refuses it."""
    norms = vectors.norm(dim=-1, keepdim=True)
    dead = int((norms == 0).sum())
    if dead:
        raise ValueError(f"a vector of norm 0 has no direction, and {dead} of {norms.numel()} have norm 0")
    unit: Tensor = vectors / norms
    return unit


def in_flat_cone(vectors: Tensor, directions: Tensor, width: float, floor: float, ceiling: float = math.inf) -> Tensor:
    """Whether ‖v/‖v‖ − D‖_∞ < γ_∞ and B_G ≤ ‖v‖ ≤ B_G1: (…, neurons, directions). This cone has one side: that of −D is
    another one. The floor is above 0, so that 0 lies in none."""
    if not 0 < width < 1:
        raise ValueError(f"a cone's width γ lies between 0 and 1, and {width:g} does not")
    if not 0 < floor <= ceiling:
        raise ValueError(f"norms in a cone lie above 0 and up to a ceiling, not between {floor:g} and {ceiling:g}")
    norms = vectors.norm(dim=-1, keepdim=True)
    strong: Tensor = (norms >= floor) & (norms <= ceiling)
    unit = vectors / torch.where(strong, norms, 1.0)
    off = (unit.unsqueeze(-2) - unit_vectors(directions).to(vectors)).abs().amax(-1)
    return (off < width) & strong


def escaped(exact: Tensor, sampled: Tensor, directions: Tensor, width: float, floor: float) -> Tensor:
    """How many exact gradients of each seed lie in a cone of width γ above the floor B_G while the sampled ones leave
    that of width γ + β/B_G above B_G − β, where β is the seed's largest ‖G̃ − G‖: (seeds,)."""
    counts = []
    for true, found in zip(exact, sampled, strict=True):
        beta = float((found - true).norm(dim=-1).max())
        wider = min(width + beta / floor, 1 - 1e-6)
        left = in_cone(true, directions, width, floor) & ~in_cone(found, directions, wider, floor - beta)
        counts.append(left.any(-1).sum())
    return torch.stack(counts).double()


def log_log_slope(x: Tensor, y: Tensor) -> float:
    """The slope of log y over log x by least squares; none (NaN) where a logarithm is not finite."""
    logs = torch.stack([x.double().log(), y.double().log()])
    across, up = logs - logs.mean(1, keepdim=True)
    slope = float(across @ up / across.square().sum())
    return slope if math.isfinite(slope) else math.nan


def loss_slope(loss: str) -> float:
    """ℓ'(0) of a loss of the margin, and of the squared error per unit of label: −2."""
    slopes = {"hinge": -1.0, "logistic": -0.5, "squared": -2.0}
    if loss not in slopes:
        raise ValueError(f"losses are {', '.join(slopes)}, not {loss!r}")
    return slopes[loss]


def safe_oracle_loss(components: int, tails: float) -> float:
    """A bound on the hinge loss of Σ_j y_j/t·max(0, ⟨D_j, x⟩ − 2t), t = tails·σ, when ‖μ_j‖ ≥ 4t:
    Φ̄(s) + (r − 1)(φ(s) − sΦ̄(s))/s."""
    return upper_tail(tails) + (components - 1) * mean_excess(tails) / tails


def upper_tail(z: float) -> float:
    """Φ̄(z), the chance that a standard normal variable exceeds z."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def density(z: float) -> float:
    """φ(z)."""
    return math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


def mean_excess(z: float) -> float:
    """E max(0, N − z) = φ(z) − zΦ̄(z) of a standard normal variable N."""
    return density(z) - z * upper_tail(z)


def mixture_oracle(mixture: GaussianMixture, inputs: Tensor, knot: float) -> Tensor:
    """g* = Σ_j (y_j/t)·max(0, ⟨D_j, x⟩ − 2t) over the components, t = ``knot``: (seeds, n)."""
    unit = (mixture.means / mixture.means.norm(dim=1, keepdim=True)).to(inputs)
    bumps = (inputs @ unit.T - 2 * knot).clamp(min=0)
    outputs: Tensor = bumps @ mixture.component_labels.to(inputs) / knot
    return outputs


def linear_oracle(problem: LinearData, inputs: Tensor) -> Tensor:
    """g* = (1/β)[max(0, ⟨w*, x⟩) − max(0, −⟨w*, x⟩)], two neurons with the margin β: (seeds, n). Its loss is 0."""
    along = inputs @ problem.features[0].to(inputs)
    outputs: Tensor = (along.clamp(min=0) - (-along).clamp(min=0)) / problem.margin
    return outputs
