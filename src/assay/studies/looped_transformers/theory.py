"""The two sides of the source's identity: one layer of the construction, and gradient descent written out.

X (..., n, d), y (..., n), steps η (T,) or (T, ...). Bounds and step rules that people use on their own models come from
``assay.methods``.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
