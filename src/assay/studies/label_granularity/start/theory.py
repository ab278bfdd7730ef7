"""What the mathematics predicts of the start: detectors at the source's own sizes, first updates, and its regime."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..problem import HierarchicalPatches
from ..theory import normal_tail


def printed_upper_tail(x: float) -> float:
    """The source's upper bound on Q(x): ½ e^{−x²/2}/(x√2π). At x = 3 it is below the tail itself."""
    return 0.5 * math.exp(-x * x / 2) / (x * math.sqrt(2 * math.pi))


def theory_detectors(d: int, c0: float, *, fine: bool) -> float:
    """E|S*| at the source's own sizes with unit constants: m = d^{2+2c0}, c_b = √(4+2c0) (coarse), or m = d^{1+2c0},
    c_b = √(2+2c0) (fine). Below one neuron for every d that can be simulated."""
    power, square = (1, 2) if fine else (2, 4)
    tau = math.sqrt((square + 2 * c0) * math.log(d))
    return math.pow(d, power + 2 * c0) * normal_tail(tau) * (1 - normal_tail(tau)) ** (d - 1)


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
