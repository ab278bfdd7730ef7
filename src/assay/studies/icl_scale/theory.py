"""Rank-limited linear attention on in-context regression: its optimum, and its exact error on noisy prompts.

Λ (..., d, d) is the covariance of the tokens, with eigenvalues lam (d,) in descending order; U is the key-query matrix
and u the weight of the labels, so that ŷ = u(Σ yᵢxᵢ/ρ)ᵀUx. N examples stand in a pretraining prompt, M in one of the
evaluation. The error of the optimum at every rank (Theorem 5.4.2) is ``assay.methods.rank_noise``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def _trace(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)


def gamma(Lambda: Tensor, N: int) -> Tensor:
    """Γ = (1 + 1/N)Λ + tr(Λ)I/N of Lemma 5.1."""
    eye = torch.eye(Lambda.shape[-1], dtype=Lambda.dtype, device=Lambda.device)
    return (1 + 1 / N) * Lambda + _trace(Lambda)[..., None, None] * eye / N


def pretraining_loss(U: Tensor, u: Tensor, Lambda: Tensor, N: int) -> Tensor:
    """Lemma 5.1 with its constant: tr(½u²ΓΛUΛUᵀ − uΛ²Uᵀ) + ½tr Λ, half of the mean squared error."""
    quadratic = _trace(gamma(Lambda, N) @ Lambda @ U @ Lambda @ U.mT)
    linear = _trace(Lambda @ Lambda @ U.mT)
    return 0.5 * u**2 * quadratic - u * linear + 0.5 * _trace(Lambda)


def widened(lam: Tensor, N: int) -> Tensor:
    """λ′ = (1 + 1/N)λ + tr(D)/N, the eigenvalues of Γ; the trace is that of all directions."""
    return (1 + 1 / N) * lam + lam.sum() / N


def kept(lam: Tensor, r: int) -> Tensor:
    """Which of the directions a network of rank r keeps: the first r."""
    if not 0 <= r <= len(lam):
        raise ValueError(f"rank {r} is not possible in {len(lam)} dimensions")
    return torch.arange(len(lam), device=lam.device) < r


def optimal_gains(lam: Tensor, N: int, r: int) -> Tensor:
    """Theorem 5.4.1: v*ᵢ = 1/λ′ᵢ for i ≤ r and 0 otherwise; uU* = Q diag(v*) Qᵀ."""
    return kept(lam, r) / widened(lam, N)


def lowest_loss(lam: Tensor, N: int, r: int) -> Tensor:
    """L*ᵣ = ½tr D − ½Σ_{i≤r} λᵢ²/λ′ᵢ."""
    return 0.5 * lam.sum() - 0.5 * (kept(lam, r) * lam.square() / widened(lam, N)).sum()


def exchange_cost(lam: Tensor, N: int, r: int) -> Tensor:
    """What it costs to keep direction r + 1 in place of r, ½(λᵣ²/λ′ᵣ − λᵣ₊₁²/λ′ᵣ₊₁); at full rank, to lose the last."""
    worth = torch.cat([lam.square() / widened(lam, N), lam.new_zeros(1)])
    return 0.5 * (worth[r - 1] - worth[r])


def label_moments(w: Tensor, Lambda: Tensor, sigma2: float) -> Tensor:
    """Cov(yx) = (σ² + ‖w‖²_Λ)Λ + Λwwᵀ Λ for y = ⟨w, x⟩ + ε (the source prints Λwᵀw Λ)."""
    seen = (Lambda @ w.unsqueeze(-1)).squeeze(-1)
    energy = sigma2 + (w * seen).sum(-1)
    return energy[..., None, None] * Lambda + seen.unsqueeze(-1) * seen.unsqueeze(-2)


@dataclass(frozen=True)
class Error:
    """The mean squared error on a prompt, in the source's three parts; there is no factor ½."""

    label_noise: Tensor
    input_noise: Tensor
    bias: Tensor

    @property
    def total(self) -> Tensor:
        return self.label_noise + self.input_noise + self.bias


def evaluation_error(A: Tensor, Lambda: Tensor, w: Tensor, M: int, sigma2: float) -> Error:
    """The exact error of any network with uU = A, trained or not, on a task w (..., d) with M noisy examples."""
    seen = (Lambda @ w.unsqueeze(-1)).squeeze(-1)
    spread = A @ Lambda @ A.mT
    miss = (A.mT @ seen.unsqueeze(-1)).squeeze(-1) - w
    bias = (miss * (Lambda @ miss.unsqueeze(-1)).squeeze(-1)).sum(-1)
    inputs = _trace(label_moments(w, Lambda, 0.0) @ spread) / M
    return Error(sigma2 * _trace(Lambda @ spread) / M, inputs, bias)


def long_prompt_error(lam: Tensor, r: int, w: Tensor, M: int, sigma2: float) -> Tensor:
    """The limit N → ∞: ‖ξ‖²_D + ((r+1)‖s‖²_D + r‖ξ‖²_D + rσ²)/M, for positive eigenvalues."""
    s = torch.where(kept(lam, r), w, 0.0)
    signal, lost = (lam * s.square()).sum(-1), (lam * (w - s).square()).sum(-1)
    return lost + ((r + 1) * signal + r * lost + r * sigma2) / M


def gap(lam: Tensor, N: int, r: int, larger: int, signal: float, M: int, sigma2: float) -> float:
    """Theorem 5.4.3: the error of rank ``larger`` minus that of r where the task lies in the first r directions with
    ‖s‖²_D = signal: (signal + σ²)/M · Σ_{r<i≤larger} (λᵢ/λ′ᵢ)²."""
    extra = kept(lam, larger) & ~kept(lam, r)
    return float((signal + sigma2) / M * (lam / widened(lam, N)).square()[extra].sum())


def principal_angle(A: Tensor, features: Tensor, r: int) -> Tensor:
    """The largest angle in degrees between the top-r singular spaces of A, left or right, and the first r columns of
    ``features``."""
    left, _, right = torch.linalg.svd(A)
    top = features[..., :r]

    def off(space: Tensor) -> Tensor:
        sine: Tensor = torch.linalg.matrix_norm(space - top @ (top.mT @ space), ord=2)
        return sine

    sine = torch.maximum(off(left[..., :r]), off(right.mT[..., :r]))
    return torch.rad2deg(torch.asin(sine.clamp(max=1)))
