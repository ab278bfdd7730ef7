"""The regularised objective on all inputs: its global minimum in closed form (Lemma 4.7, sharpened)."""

from __future__ import annotations

import math

from assay.methods.modular_margin import max_margin


def vanishing_penalty(p: int, k: int) -> float:
    """γ*(p−1)/p: from this λ on the zero network minimises mean cross-entropy on D_p plus λΣ_i‖θ_i‖^{k+1}."""
    return max_margin(p, k) * (p - 1) / p


def regularised_gap(p: int, k: int, penalty: float) -> float:
    """The margin of the global minimiser of mean cross-entropy on all of D_p plus λΣ_i‖θ_i‖^{k+1}, at any width from
    ``required_width`` on: log((1 + (1 − t)(p − 1))/t) with t = λ/``vanishing_penalty``, and 0 from t = 1 on.

    Averaging over translations a → a + s, c → c + Σs and reflection raises neither the loss, convex in f, nor the
    penalty, and leaves f = Σ_ζ v_ζ cos_ζ(Σa − c). By J ≤ γ*‖θ‖^{k+1} that costs t Σ_ζ v_ζ at least, and the
    construction does it for that: a convex problem, stationary where all v_ζ are equal. So the normalised margin is γ*
    at every such λ; Lemma 4.7 asks for λ → 0.
    """
    share = penalty / vanishing_penalty(p, k)
    return math.log((1 + (1 - share) * (p - 1)) / share) if share < 1 else 0.0


def regularised_optimum(p: int, k: int, penalty: float) -> float:
    """The value of that global minimum."""
    gap = regularised_gap(p, k, penalty)
    return math.log1p((p - 1) * math.exp(-gap)) + penalty * gap / max_margin(p, k)
