"""What the mathematics predicts about coarse and fine labels, with the source's names.

m neurons per class, initial weights N(0, σ0²), threshold τ in units of σ0, k subclasses, s* patches per feature of P,
step size η, bias rate ρ. |S| are numbers of detector neurons. Corrections of the source are marked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .problem import DISTRACTOR, HierarchicalPatches, Samples

OUTPUT_BOUND = math.log(1.5)  # B: while all outputs lie in [0, log 3/2], p ∈ [1/(3k), 3/(4k)]


def normal_tail(x: float) -> float:
    """Q(x) = P[N(0, 1) > x], exactly. The source's tail bounds carry a factor ½ too many; its upper one is false."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def printed_upper_tail(x: float) -> float:
    """The source's upper bound on Q(x): ½ e^{−x²/2}/(x√2π). At x = 3 it is below the tail itself."""
    return 0.5 * math.exp(-x * x / 2) / (x * math.sqrt(2 * math.pi))


def thresholds(tau: float, d: int) -> tuple[float, float]:
    """(τ−, τ+) of the detector sets: c_b√(L ∓ L^{−5}) with L = log d, written with τ = c_b√L."""
    L = math.log(d)
    return tau * math.sqrt(1 - L**-6), tau * math.sqrt(1 + L**-6)


def expected_detectors(m: int, tau: float, d: int) -> float:
    """E|S*(v)| = m p1 (1 − p2)^{d−1} with p1 = Q(τ+), p2 = Q(τ−) (Proposition 1): the neurons of one class that answer
    v and no other dictionary vector."""
    low, high = thresholds(tau, d)
    return m * normal_tail(high) * (1 - normal_tail(low)) ** (d - 1)


def theory_detectors(d: int, c0: float, *, fine: bool) -> float:
    """E|S*| at the source's own sizes with unit constants: m = d^{2+2c0}, c_b = √(4+2c0) (coarse), or m = d^{1+2c0},
    c_b = √(2+2c0) (fine). Below one neuron for every d that can be simulated."""
    power, square = (1, 2) if fine else (2, 4)
    tau = math.sqrt((square + 2 * c0) * math.log(d))
    return d ** (power + 2 * c0) * normal_tail(tau) * (1 - normal_tail(tau)) ** (d - 1)


@dataclass(frozen=True)
class FirstStep:
    """Coefficients of v in the first update of a detector of the common and of a subclass feature."""

    common: float
    subclass: float

    @property
    def ratio(self) -> float:
        return self.common / self.subclass


def coarse_first_step(eta: float, k: int, s: float, P: int, alpha: float = 1.0) -> FirstStep:
    """Theorem D.1: η·½·ᾱ·s*/(2P) and 1/k of it."""
    common = eta * 0.5 * alpha * s / (2 * P)
    return FirstStep(common, common / k)


def fine_first_step(eta: float, k: int, s: float, P: int, alpha: float = 1.0) -> FirstStep:
    """Lemma G.2 at t = 0, where every softmax value is 1/(2k): coefficients ½ and 1 − 1/(2k)."""
    unit = eta * alpha * s / (2 * k * P)
    return FirstStep(unit / 2, unit * (1 - 1 / (2 * k)))


def first_step_noise(eta: float, sigma: float, s: float, P: int, N: int, k: int = 1) -> float:
    """The deviation of each other coordinate of a coarse detector's first update: ½ησ_ζ√s*/(P√(2Nk)), with k = 1 for
    detectors of the common feature."""
    return 0.5 * eta * sigma * math.sqrt(s) / (P * math.sqrt(2 * N * k))


def output_decomposition(s: float, common: Tensor, subclass: Tensor, S_com: Tensor, S_sub: Tensor) -> Tensor:
    """F_+(X) ≈ s*(A_com|S_+(v_+)| + A_c|S_+(v_{+,c})|) (Lemma E.2): an easy sample's output from one detector of each
    kind. With A the response ⟨w, v⟩ + b and |S| the neurons that fire it is exact up to unequal detectors."""
    return s * (common * S_com + subclass * S_sub)


def fine_common_envelope(k: int) -> tuple[float, float]:
    """The range of 1 − p − (k−1)p' while all outputs are in [0, log 3/2], from p, p' ∈ [1/(3k), 3/(4k)]."""
    return 1 - k * 3 / (4 * k), 1 - k / (3 * k)


def coarse_phase_time(eta: float, k: int, s: float, P: int, d: int, common: float, subclass: float) -> float:
    """T0: steps until an output reaches 1/d, from the first-step growth of |S_com| and |S_sub| detectors."""
    return 4 * P / (d * eta * s**2 * (common + subclass / k))


def fine_phase_time(eta: float, k: int, s: float, P: int, common: float, subclass: float, B: float = OUTPUT_BOUND):
    """T0(B) of fine training (the corollary on T0 omits the factor T0; this is η T0 s*²|S*|/(kP) = Θ(1) solved)."""
    return 2 * k * P * B / (eta * s**2 * (0.5 * common + (1 - 1 / (2 * k)) * subclass))


def log_law_constant(eta: float, k: int, s: float, P: int, rho: float, common: float, subclass: float) -> float:
    """C in F(t+1) − F(t) = C e^{−F(t)}, corrected: ηs*²/(2P)·(|S_com| + |S_sub|/k)·(1 − ρ). The source's constant lacks
    the numbers of patches and of neurons that make an output out of one neuron's growth."""
    return eta * s**2 / (2 * P) * (common + subclass / k) * (1 - rho)


def printed_log_law_constant(eta: float, k: int, s: float, P: int) -> float:
    """Lemma E.4 as printed: ηs*/(2kP)."""
    return eta * s / (2 * k * P)


def log_law(t: np.ndarray, C: float, F0: float, t0: float = 0.0) -> np.ndarray:
    """F(t) = log(C(t − t0) + e^{F0})."""
    return np.log(C * (t - t0) + math.exp(F0))


def fitted_constant(t: np.ndarray, F: np.ndarray) -> float:
    """The slope of e^F against t: C, when the logarithmic law holds."""
    return float(np.polyfit(t, np.exp(F), 1)[0])


def critical_subclasses(problem: HierarchicalPatches) -> float:
    """k* = s*/(s†ᾱ†): above it the coarse network follows the distractors of hard samples."""
    strength = problem.distractors * sum(problem.faint) / 2
    return problem.feature_patches / strength if strength else math.inf


def hard_rule(samples: Samples, projections: Tensor, biases: Tensor) -> Tensor:
    """Which hard samples the coarse network gets wrong, read off its neurons with all noise left out: (seeds, n).

    An error wherever Σ over distractors of R_{−y}(α†v_{−y}) ≥ n_sub R_y(v_{y,c}), with R_y(x) = Σ_r relu(⟨w, x⟩ + b)
    (the source's bound leaves out α†). ``projections`` (seeds, 2, neurons, 2k+2) are ⟨w, v⟩, ``biases`` (seeds, 2,
    neurons).
    """
    far = samples.kinds == DISTRACTOR
    own = (~far & (samples.strengths > 0)).sum(-1)
    wrong = torch.empty_like(own, dtype=torch.bool)
    for y in (0, 1):
        rows = samples.superclass == y
        faint = (samples.strengths * far)[:, rows].unsqueeze(-1)
        slopes, offsets = projections[:, 1 - y, :, 1 - y], biases[:, 1 - y]
        answers = torch.relu(faint * slopes[:, None, None] + offsets[:, None, None]).sum(-1)
        distracted = (answers * far[:, rows]).sum(-1)
        fine = 2 + samples.subclasses * y + samples.subclass[rows]
        responses = torch.relu(projections[:, y] + biases[:, y].unsqueeze(-1)).sum(1)  # (seeds, 2k+2)
        wrong[:, rows] = distracted >= own[:, rows] * responses[:, fine]
    return wrong


def untrained_response(norm: float, tau: float, sigma0: float = 1.0) -> float:
    """What one untrained neuron gives on average to a patch ζ of this norm: σ0[‖ζ‖φ(τ/‖ζ‖) − τQ(τ/‖ζ‖)]."""
    if norm <= 0:
        return 0.0
    x = tau / norm
    return sigma0 * (norm * math.exp(-x * x / 2) / math.sqrt(2 * math.pi) - tau * normal_tail(x))


def strong_noise_scales(k: int, s: float) -> tuple[float, float]:
    """σ_ζ* at which one patch of strong noise begins to mislead the coarse network, s*/k, and the fine one,
    s*/√(2 log 2k)."""
    return s / k, s / math.sqrt(2 * math.log(2 * k))


def harmonic_remainder(n: int) -> float:
    """ε_n in Σ_{j<n} 1/j = log n + γ − 1/(2n) − ε_n, which lies in [0, 1/(8n²)] (Lemma E.10)."""
    partial = math.fsum(1 / j for j in range(1, n))
    return math.log(n) + 0.57721566490153286 - 1 / (2 * n) - partial


@dataclass(frozen=True)
class Condition:
    """A condition of the asymptotic theory: what it asks for at this d, and what there is."""

    condition: str
    asked: str
    here: float
    met: bool


def regime_report(problem: HierarchicalPatches, *, eta: float, sigma0: float, batch: int) -> list[Condition]:
    """The source's parameter regime with unit constants and polylog(d) = log d, against one problem. The degree of s*
    alone (log^15 d, 4·10¹² at d = 1,000) puts it out of reach of any simulation."""
    d, k, s, P = problem.dim, problem.subclasses, problem.feature_patches, problem.patches
    L = math.log(d)
    low, high = problem.faint
    rows = [
        ("k ≥ polylog d", f"≥ {L:.3g}", k, k >= L),
        ("k ≤ d^0.4", f"≤ {d**0.4:.3g}", k, k <= d**0.4),
        ("s* log⁵d ≤ k", f"≤ {k / L**5:.3g}", s, s * L**5 <= k),
        ("s* ≥ log¹⁵d", f"≥ {L**15:.3g}", s, s >= L**15),
        ("ι ≤ 1/polylog d", f"≤ {1 / L:.3g}", problem.jitter, problem.jitter <= 1 / L),
        ("ι†_lo ≥ log⁻⁴d", f"≥ {L**-4:.3g}", low, low >= L**-4),
        ("s†ι†_hi ≤ 1/log d", f"≤ {1 / L:.3g}", problem.distractors * high, problem.distractors * high <= 1 / L),
        ("σ_ζ ≤ 1/(log¹⁰d √d)", f"≤ {L**-10 * d**-0.5:.3g}", problem.noise, problem.noise <= L**-10 * d**-0.5),
        ("σ_ζ* ≥ polylog d/√d", f"≥ {L * d**-0.5:.3g}", problem.strong_noise, problem.strong_noise >= L * d**-0.5),
        ("Pσ_ζ ≥ polylog d", f"≥ {L:.3g}", P * problem.noise, P * problem.noise >= L),
        ("σ0 ≤ 1/(d³s* log d)", f"≤ {1 / (d**3 * s * L):.3g}", sigma0, sigma0 <= 1 / (d**3 * s * L)),
        ("η = Θ(σ0)", f"{sigma0:.3g}", eta, 0.1 <= eta / sigma0 <= 10),
        ("N ≥ polylog d · kd", f"≥ {L * k * d:.3g}", batch, batch >= L * k * d),
    ]
    return [Condition(name, asked, float(here), bool(met)) for name, asked, here, met in rows]
