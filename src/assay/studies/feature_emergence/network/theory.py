"""Stage three: the theory's rate, how far the parameters drift at it, and what that gives for the loss."""

from __future__ import annotations

from torch import Tensor


def third_stage_rate(k: int, m: int, T: int) -> float:
    """η⁽ᵗ⁾ = k²/(T m^{1/3}) of the theory for t > 2."""
    return float(k**2 / (T * m ** (1 / 3)))


def stage_three_drift(eta: float, lam: float, t: int, w2: float, a2: float) -> tuple[float, float, float]:
    """Bounds on |a_t|, ‖w_t − w_2‖ and |b_t − b_2| after t steps of size η with decay λ (none on b).

    ``w2`` is the largest ‖w⁽²⁾‖ and ``a2`` the largest |a⁽²⁾|.
    """
    shift = eta**2 * t**2 + eta * t * a2
    return eta * t + a2, 2 * eta * lam * t * w2 + shift, shift


def online_bound(reference: float, norm: float, start: float, eta: float, gradients: Tensor) -> float:
    """The online-descent bound on the mean loss: reference loss + ‖θ*‖²/(2ηT) + ‖θ_1‖·mean‖∇‖ + η·mean‖∇‖²."""
    steps = len(gradients)
    return float(reference + norm**2 / (2 * eta * steps) + start * gradients.mean() + eta * gradients.square().mean())


def final_loss_order(k: int, m: int, T: int) -> float:
    """The order of the final loss: k⁸/m^{2/3} + k³T/m² + k²m^{2/3}/T."""
    return float(k**8 / m ** (2 / 3) + k**3 * T / m**2 + k**2 * m ** (2 / 3) / T)
