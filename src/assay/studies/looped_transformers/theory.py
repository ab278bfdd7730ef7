"""What the mathematics predicts about gradient descent in a looped transformer, with the source's names.

X (..., n, d), y (..., n), G = XᵀX with extreme eigenvalues μ and L, κ = L/μ, steps η (T,) or (T, ...), weights Q and P
(..., d+1, d+1). Bounds and step rules that people use on their own models come from ``assay.methods``.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from assay.methods.gradient_descent_rates import error_bound, required_loops, step_sizes

__all__ = [
    "best_cosine",
    "competing_error",
    "competing_examples",
    "edge_condition",
    "error_bound",
    "exact_error",
    "exact_trajectory",
    "fitted_slope",
    "gradient_descent",
    "layer_output",
    "mean_error",
    "required_loops",
    "shear",
    "shortcut",
    "slope",
    "slope_gap",
    "step_sizes",
    "trial_means",
]


def layer_output(X: Tensor, y: Tensor, q: Tensor, alpha: float) -> Tensor:
    """Lemma 8.13: one constructed layer outputs zero except for the query row (qᵀXᵀX + αyᵀX, 0): (..., n+1, d+1)."""
    out = X.new_zeros(*X.shape[:-2], X.shape[-2] + 1, X.shape[-1] + 1)
    out[..., -1, :-1] = ((q.unsqueeze(-2) @ X.mT @ X) + alpha * (y.unsqueeze(-2) @ X)).squeeze(-2)
    return out


def gradient_descent(X: Tensor, y: Tensor, eta: Tensor, theta: Tensor | None = None) -> Tensor:
    """θ⁽⁰⁾, …, θ⁽ᵀ⁾ of gradient descent on ½‖y − Xθ‖² (Definition 8.9), written out: (T+1, ..., d)."""
    G, r = X.mT @ X, (y.unsqueeze(-2) @ X).squeeze(-2)
    theta = torch.zeros_like(r) if theta is None else theta
    path = [theta]
    for step in eta:
        theta = theta - step.unsqueeze(-1) * ((G @ theta.unsqueeze(-1)).squeeze(-1) - r)
        path.append(theta)
    return torch.stack(path)


def exact_trajectory(G: Tensor, theta: Tensor, eta: Tensor) -> Tensor:
    """θ⁽ᵗ⁾ − θ* = −Π(I − ηG)θ* from θ⁽⁰⁾ = 0, one factor per eigen-direction: (T+1, ..., d)."""
    values, vectors = torch.linalg.eigh(G)
    start = (vectors.mT @ theta.unsqueeze(-1)).squeeze(-1)
    factors = torch.cat([torch.ones_like(values)[None], (1 - eta.unsqueeze(-1) * values).cumprod(0)])
    return -(vectors @ (factors * start).unsqueeze(-1)).squeeze(-1)


def exact_error(G: Tensor, theta: Tensor, eta: Tensor, alpha: float) -> Tensor:
    """⟨TF, θ*⟩ − α = −α θ*ᵀΠ(I − ηG)θ* after 0..T loops from zero: (T+1, ...)."""
    return alpha * (exact_trajectory(G, theta, eta) * theta).sum(-1)


def mean_error(G: Tensor, eta: Tensor, alpha: float = 1.0) -> Tensor:
    """The mean of |⟨TF, θ*⟩ − α| over θ* uniform on the sphere, for η ≤ 1/L: |α| tr(Π(I − ηG))/d: (...)."""
    values = torch.linalg.eigvalsh(G)
    return abs(alpha) * (1 - eta.unsqueeze(-1) * values).prod(0).mean(-1)


def slope(kappa: float) -> float:
    """The asymptotic slope of log ‖θ⁽ᵗ⁾ − θ*‖² at η = 1/L: 2 ln(1 − 1/κ)."""
    return 2 * math.log1p(-1 / kappa)


def slope_gap(kappa: float) -> float:
    """How much steeper the squared error falls than its bound e^{−t/κ}: 2 ln(1 − 1/κ) + 1/κ, negative."""
    return slope(kappa) + 1 / kappa


def fitted_slope(t: np.ndarray, error: np.ndarray, floor: float) -> float:
    """The slope of log error over the later half of the loops at which it is above the floor."""
    t, error = t[error > floor], error[error > floor]
    later = slice(len(t) // 2, None)
    return float(np.polyfit(t[later], np.log(error[later]), 1)[0])


def trial_means(kappa: np.ndarray, trials: int) -> np.ndarray:
    """Means of κ (seeds, draws) over disjoint groups of ``trials``: (seeds, groups)."""
    groups = kappa.shape[1] // trials
    return kappa[:, : groups * trials].reshape(len(kappa), groups, trials).mean(2)


def edge_condition(n: int, d: int) -> float:
    """((1 + √(d/n))/(1 − √(d/n)))²: κ of a large Gaussian X from the edges of its spectrum."""
    if n <= d:
        raise ValueError(f"{n} examples in {d} dimensions: κ needs n > d")
    ratio = math.sqrt(d / n)
    return ((1 + ratio) / (1 - ratio)) ** 2


def competing_error(T: int, d: int, n: float) -> float:
    """Theorem 8.17, quoted by the source from earlier work on another task: 8Td²2^{2T}/√n."""
    return 8 * T * d**2 * 2.0 ** (2 * T) / math.sqrt(n)


def competing_examples(T: int, d: int) -> float:
    """The fewest examples under which Theorem 8.17 says anything: n ≥ 64T²d⁴2^{4T}."""
    return 64 * T**2 * d**4 * 2.0 ** (4 * T)


def shortcut(X: Tensor, y: Tensor, alpha: float) -> Tensor:
    """q = αx/y of the one example with the largest |y|: ⟨q, θ*⟩ = α exactly, whatever θ* is: (..., d)."""
    best = y.abs().argmax(-1, keepdim=True)
    return alpha * X.take_along_dim(best.unsqueeze(-1), -2).squeeze(-2) / y.take_along_dim(best, -1)


def shear(Q: Tensor, P: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Other weights with the same output on every prompt: Q → A⁻¹Q, P → PA with A = [[I, b], [0, 1]].

    A leaves the part of the query row that is read out, and the start (0, α), as they are. With Q → cQ, P → P/c these
    are all weights of equal function, since the examples' Gram matrices span the symmetric matrices.
    """
    A = torch.eye(Q.shape[-1], dtype=Q.dtype)
    inverse = A.clone()
    A[:-1, -1], inverse[:-1, -1] = b, -b
    return inverse @ Q, P @ A


def best_cosine(Q: Tensor, P: Tensor) -> float:
    """cos of the angle between Q ⊗ P and the construction I ⊗ diag(I, 0), at the best shear; the scale plays no part.

    ``Q`` and ``P`` are one network's (d+1, d+1). At the construction it is 1.
    """
    Q, P = Q.detach().double(), P.detach().double()
    keep = torch.eye(len(Q), dtype=torch.float64)
    keep[-1, -1] = 0
    b = torch.zeros(len(Q) - 1, dtype=torch.float64, requires_grad=True)

    def cosine() -> Tensor:
        key, value = shear(Q, P, b)
        aligned = key.trace() * (value * keep).sum()
        return aligned / (key.norm() * value.norm() * math.sqrt(len(Q)) * keep.norm())

    optimizer = torch.optim.LBFGS([b], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = -cosine()
        loss.backward()
        return loss

    before = float(cosine().detach())
    optimizer.step(closure)
    return max(before, float(cosine().detach()))
