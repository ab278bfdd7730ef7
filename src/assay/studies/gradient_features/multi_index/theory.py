"""First gradients of a polynomial of few directions: what they see, and what their sampling noise sees."""

from __future__ import annotations

import math

from torch import Tensor


def quadratic_gradient(hessian: Tensor, weights: Tensor) -> Tensor:
    """E[y·x·1{⟨w, x⟩ > 0}] for y = ½(xᵀHx − tr H): (Hŵ − ½ŵ·ŵᵀHŵ)/√(2π). (…, dim)."""
    unit = weights / weights.norm(dim=-1, keepdim=True)
    pulled = unit @ hessian.to(unit)
    along = (pulled * unit).sum(-1, keepdim=True)
    found: Tensor = (pulled - 0.5 * unit * along) / math.sqrt(2 * math.pi)
    return found


def noise_fraction(dim: int) -> float:
    """Share of the norm that pure sampling noise has in the relevant directions when y = z_1z_2z_3: the noise has
    covariance E[y²xxᵀ], which is 3 along each of the three and 1 elsewhere: √(9/(d + 6))."""
    return math.sqrt(9 / (dim + 6))


def subspace_fraction(vectors: Tensor, rank: int = 3) -> Tensor:
    """‖P_U v‖/‖v‖ with U the first coordinates: (…)."""
    found: Tensor = vectors[..., :rank].norm(dim=-1) / vectors.norm(dim=-1)
    return found
