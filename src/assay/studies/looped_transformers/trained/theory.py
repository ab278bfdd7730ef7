"""Which weights are the construction: those of equal function, and how far others are from them.

Weights Q and P are (..., d+1, d+1).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


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
        found: Tensor = aligned / (key.norm() * value.norm() * math.sqrt(len(Q)) * keep.norm())
        return found

    optimizer = torch.optim.LBFGS([b], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = -cosine()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    before = float(cosine().detach())
    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return max(before, float(cosine().detach()))
