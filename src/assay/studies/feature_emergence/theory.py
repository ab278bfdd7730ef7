"""What the mathematics predicts: activation, moments, good network, gradients after one and two steps, bounds.

Names follow the source: d, D, k, m, γ (gamma), σ̃ (scale), σ_φ, p_o, a, b, w, s = σ_ξ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_SQRT2 = math.sqrt(2)


def normal_cdf(z: Tensor) -> Tensor:
    return 0.5 * torch.erfc(-z / _SQRT2)


def truncated_relu(z: Tensor) -> Tensor:
    """σ(z) = min(1, max(z, 0))."""
    return z.clamp(0, 1)


def smoothed(z: Tensor, s: float) -> Tensor:
    """E σ(z + ξ) for ξ ~ N(0, s²), in closed form: F(z) − F(z − 1) with F(u) = uΦ(u/s) + sφ(u/s)."""
    if s < 0:
        raise ValueError(f"a smoothing of {s} is not possible")
    if s == 0:
        return truncated_relu(z)

    def integral(u: Tensor) -> Tensor:
        return u * normal_cdf(u / s) + s / math.sqrt(2 * math.pi) * torch.exp(-((u / s) ** 2) / 2)

    return integral(z) - integral(z - 1)


def smoothed_slope(z: Tensor, s: float) -> Tensor:
    """The derivative of ``smoothed``: Φ(z/s) − Φ((z−1)/s); the gate 1{0 < z < 1} when s = 0."""
    if s < 0:
        raise ValueError(f"a smoothing of {s} is not possible")
    if s == 0:
        return ((z > 0) & (z < 1)).to(z.dtype)
    # One erf pair; the difference of erfs equals the difference of CDFs.
    return 0.5 * (torch.erf(z / (s * _SQRT2)) - torch.erf((z - 1) / (s * _SQRT2)))


@dataclass(frozen=True)
class GoodNetwork:
    """A network of 3(k+1) truncated-ReLU neurons, all along u*: g(x) = Σ a_i σ(w_scale ⟨u*, x⟩ + b_i)."""

    w_scale: float
    a: Tensor
    b: Tensor

    def __call__(self, projection: Tensor) -> Tensor:
        """The output for the projections ⟨u*, x⟩."""
        return truncated_relu(self.w_scale * projection.unsqueeze(-1) + self.b) @ self.a


def good_network(k: int, positive: tuple[int, ...], mu: float, scale: float, *, general: bool = False) -> GoodNetwork:
    """The representability construction: hats of width 1/2 around every count, each of the sign of its label.

    ``mu`` is Σ_A E φ̃_j and ``scale`` is σ̃. Of the two placements (hats centred on the counts, or shifted by a
    quarter and doubled) the one is taken whose biases all have modulus at least 1/8. ``general`` doubles the heights
    and halves the scale, for the general family.
    """
    if not set(positive) <= set(range(k + 1)):
        raise ValueError(f"the positive counts {positive} are not within 0..{k}")
    signs = [1.0 if count in positive else -1.0 for count in range(k + 1)]
    shift, height = 0.0, 2.0
    if min(abs(bias) for bias in _hat_biases(k, mu, shift)) < 0.125 - 1e-12:
        shift, height = 0.25, 4.0
    biases = _hat_biases(k, mu, shift)
    factor = 8 * k if general else 4 * k
    height *= 2 if general else 1
    a = [sign * height * slope * factor for sign in signs for slope in (1.0, -2.0, 1.0)]
    return GoodNetwork(
        scale / factor, torch.tensor(a, dtype=torch.float64), torch.tensor(biases, dtype=torch.float64) / factor
    )


def _hat_biases(k: int, mu: float, shift: float) -> list[float]:
    return [mu - count - shift + side for count in range(k + 1) for side in (0.5, 0.0, -0.5)]


def general_condition(k: int, mu: float, d: int, p_o: float, D: int, scale: float) -> bool:
    """Whether the good network of the general family applies: (kμ/√d)(p_o D/σ̃) ≤ 1/16."""
    return k * mu / math.sqrt(d) * p_o * D / scale <= 1 / 16


def initial_scales(k: int, gamma: float, scale: float) -> tuple[float, float, float]:
    """σ_w = 1/k, σ_b = 1/k², σ_a = σ̃²/(γk²)."""
    if gamma <= 0:
        raise ValueError(f"γ = {gamma:g} gives no scale for the second layer; pass the structured problem's γ")
    return 1 / k, 1 / k**2, scale**2 / (gamma * k**2)


def first_step_size(k: int, m: int, gamma: float, scale: float, p_min: float = 1.0) -> float:
    """η⁽¹⁾ = γ²σ̃/(km³), as in the lemma (the full theorem prints σ̃²); times p_min in the general family."""
    if gamma <= 0:
        raise ValueError(f"γ = {gamma:g} gives no first step size; pass the structured problem's γ")
    return p_min * gamma**2 * scale / (k * m**3)


def step_one_gate(background: Tensor, q: Tensor, b: Tensor, s: float) -> tuple[Tensor, Tensor]:
    """β_i = Pr[⟨φ_{−A}, q_{−A}⟩ + b_i + ξ ∈ (0,1)] and κ_i = E[σ̃'²]/β_i², averaged over the sampled backgrounds.

    ``background`` holds φ with the relevant coordinates set to zero: (seeds, n, D); ``q`` (seeds, neurons, D).
    """
    gate = smoothed_slope(background @ q.mT + b.unsqueeze(1), s)
    beta = gate.mean(1)
    return beta, gate.square().mean(1) / beta.square()


def step_two_gate(b: Tensor, s: float) -> Tensor:
    """β_i = Pr[b_i + ξ ∈ (0, 1)]: after one tiny step the gate no longer depends on the input."""
    return smoothed_slope(b, s)


def expected_tangent(k: int, D: int, n: int, p_o: float, gamma: float, kappa: float = 1.0) -> float:
    """tan of the angle between a neuron after step two (κ = 1) or one (κ = κ_i) and u*: sampling noise alone.

    Derived: as η⁽¹⁾ → 0 every neuron is collinear with the empirical E[yx], whose background components have
    variance σ_φ²/n: tan² = κ(D−k)p_o(1−p_o)/(nkγ²).
    """
    return math.sqrt(kappa * (D - k) * p_o * (1 - p_o) / (n * k * gamma**2))


def class_weight_spread(positive: float | Tensor) -> float | Tensor:
    """E[α_y²] of the weights α_y = 1/(2 Pr[y]): the factor by which balancing classes raises sampling variances."""
    return (1 / positive + 1 / (1 - positive)) / 4


def third_stage_rate(k: int, m: int, T: int) -> float:
    """η⁽ᵗ⁾ = k²/(T m^{1/3}) of the theory for t > 2."""
    return k**2 / (T * m ** (1 / 3))


def cosine_of_tangent(tangent: float) -> float:
    return 1 / math.sqrt(1 + tangent**2)


def gradient_error_scale(k: int, D: int, m: int, sigma_phi: float, scale: float, delta: float = 0.01) -> float:
    """ε_e of the step-one lemma."""
    log = math.log(D * m / delta)
    return (k * math.sqrt(log) + log**1.5) / math.sqrt(sigma_phi**2 * scale**2 * (D - k))


def second_error_scale(eta: float, a: float, k: int, gamma: float, epsilon: float, scale: float, s: float) -> float:
    """ε_{e2} of the step-two lemma without its e^{−Θ(k)} term."""
    return eta * abs(a) * k * (gamma + epsilon) / (scale**2 * s)


def typical_initialisation(q: Tensor, sigma_w: float, k: int, m: int, delta: float = 0.01) -> Tensor:
    """Whether each neuron's background weights are typical: Σq² in [½, 3/2]σ_w²(D−k), max|q| ≤ σ_w√(2 log(Dm/δ)).

    ``q``: (..., D−k) background coordinates.
    """
    size = q.square().sum(-1) / (sigma_w**2 * q.shape[-1])
    limit = sigma_w * math.sqrt(2 * math.log((q.shape[-1] + k) * m / delta))
    return (size >= 0.5) & (size <= 1.5) & (q.abs().amax(-1) <= limit)


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
    return k**8 / m ** (2 / 3) + k**3 * T / m**2 + k**2 * m ** (2 / 3) / T


def fixed_feature_bound(p_o: float, N: int, B: float, k: int, D: int) -> float:
    """Some member of the family costs any fixed N features of norm-B weights at least p_o(1 − √(2N)·B/2^k)."""
    if k % 2 == 0 or not 3 < k <= D / 16:
        raise ValueError(f"the bound is about odd k with 3 < k ≤ D/16, not k = {k}, D = {D}")
    return p_o * (1 - math.sqrt(2 * N) * B / 2**k)


def bessel_bound(p_o: float, N: int, B: float, k: int, D: int) -> float:
    """The sharper bound p_o(1 − B√(N/C(D,k))), from Bessel's inequality over the parities of k of D bits."""
    return p_o * (1 - B * math.sqrt(N / math.comb(D, k)))


def bessel_average(features: Tensor, parities: Tensor) -> Tensor:
    """The mean over parities of ‖E[χ_A Ψ]‖², which Bessel bounds by N/(number of parities).

    ``features`` (inputs, N) with entries in [−1, 1] over all inputs, ``parities`` (inputs, sets) with entries ±1.
    """
    if features.abs().max() > 1:
        raise ValueError("the bound is about features in [−1, 1]")
    return (parities.mT @ features / len(features)).square().sum(1).mean()


def query_bound(D: int, k: int) -> float:
    """Statistical queries (or 1/tolerance) needed without structure: ½·C(D,k)^{1/3}."""
    return 0.5 * math.comb(D, k) ** (1 / 3)


def count_threshold_accuracy(law: Tensor, labels: Tensor) -> float:
    """The best accuracy of a threshold on the number of relevant patterns: what the best linear predictor reaches."""
    best = 0.0
    for cut in range(len(law) + 1):
        guess = torch.where(torch.arange(len(law)) >= cut, 1.0, -1.0)
        right = float(law[guess == labels].sum())
        best = max(best, right, 1 - right)
    return best


def structured_part_accuracy(p_o: float) -> float:
    """The accuracy of a predictor that solves the structured component and guesses on the uniform one."""
    return 1 - p_o / 2
