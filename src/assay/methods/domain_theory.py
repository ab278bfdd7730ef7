"""Weight decay or the nuclear norm in a domain that training has not seen: what the theory says for your numbers.

In the diagonal model r invariant features agree with the label in every domain, and m environmental ones with
probability ½ + γ in the training domains and ½ − γ outside; every feature has one weight. All of a kind share it at the
optimum, α or β, so that two numbers decide. The margin M = α·S_R + β·S_U is a sum of independent features whose
characteristic function has a closed form, and loss and accuracies are one integral of it each: nothing is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay._reports import Report, bars

from ._checks import number, whole

Values = tuple[float, np.ndarray, np.ndarray]  # a function of the two weights, its slope (2,) and curvature (2, 2)
END = 13.0  # 1/sinh(πt) is below 10⁻¹⁷ beyond
ROUNDING = 1e-13  # of a loss
TERMS = 1 << 16  # of the series of an accuracy
DIGITS = 9  # of an accuracy


@dataclass(frozen=True)
class DomainOptimum:
    """The weight of every invariant (α) and environmental (β) feature at an optimum, and how often it is right in the
    training domains and outside, to nine digits; ½ where nothing is learned."""

    alpha: float
    beta: float
    inside: float
    outside: float


@dataclass(frozen=True, repr=False)
class DomainTheory(Report):
    """The optima of both penalties, the bounds that the theory states, and the rows that the norm of a batch needs."""

    invariant: int  # r
    environmental: int  # d − r
    gamma: float
    decay: float
    strength: float
    weight_decay: DomainOptimum
    nuclear_norm: DomainOptimum
    least_invariant: int  # the least r with γ > 3/√r
    least_dimension: int  # the least d above r/γ² + r, of this r or the least one
    alpha_bound: float  # 1/√r, above α under weight decay
    ratio_bound: float  # 3/(4γ), above α/β under weight decay
    outside_bound: float  # e^(−r/10), above its accuracy outside
    gamma_limit: float  # γ up to which the nuclear norm leaves environmental features out, to leading order
    rows: int  # of a batch whose norm lies as close to that of all data as was asked for
    rows_per_domain: int
    lam: float  # of ``NuclearNorm(lam)`` at that many rows
    few_rows_suffice: bool  # whether most inputs outside are right with batches of far fewer rows, too

    @property
    def dimension(self) -> int:
        return self.invariant + self.environmental

    @property
    def speaks(self) -> bool:
        """Whether sizes are those for which the bounds are proved."""
        return self.invariant >= self.least_invariant and self.dimension >= self.least_dimension

    def shortfall(self, rows: int) -> float:
        """The share by which the norm of a batch of so many rows lies below that of all data, to leading order: at most
        d/(8·rows). It says nothing where rows are fewer than features."""
        return self.dimension / (8 * whole("rows", rows, 1))

    def headline(self) -> str:
        right = f"weight decay {self.weight_decay.outside:.3g}, the nuclear norm {self.nuclear_norm.outside:.3g}"
        asked = f"ask for {self.least_invariant} invariant features and {self.least_dimension} in all"
        bounds = "are proved for these sizes" if self.speaks else asked
        return f"right outside the training domains: {right}; bounds {bounds}"

    def table(self) -> list[dict[str, Any]]:
        """A row per penalty."""
        found = {"weight decay": self.weight_decay, "nuclear norm": self.nuclear_norm}
        return [{"penalty": name, **vars(each)} for name, each in found.items()]

    def figure(self) -> Any:
        """Accuracies in the training domains and outside."""
        rows = [
            {"penalty": row["penalty"], "accuracy": row[where], "where": where}
            for row in self.table()
            for where in ("inside", "outside")
        ]
        return bars(rows, "penalty", "accuracy", "where")


def domain_theory(
    invariant: int,
    environmental: int,
    gamma: float,
    *,
    decay: float = 0.1,
    strength: float = 0.03,
    domains: int = 1,
    shortfall: float = 1 / 16,
) -> DomainTheory:
    """Optima, accuracies and bounds for r, d − r and γ. ``decay`` λ enters as λ/2·‖w‖², ``strength`` weighs the nuclear
    norm over √rows. ``rows`` is for a batch, drawn in equal parts from ``domains`` training domains, whose norm falls
    short of that of all data by at most ``shortfall``; twice as many rows as features is the default."""
    r, m = whole("invariant", invariant, 1), whole("environmental", environmental, 1)
    number("gamma", gamma, above=0, below=0.5)
    number("decay", decay, above=0)
    number("strength", strength, above=0)
    number("shortfall", shortfall, above=0, most=1 / 8)
    domains = whole("domains", domains, 1)
    # What rounding leaves of a whole number is whole.
    enough = math.floor(9 / gamma**2 + 1e-9) + 1
    most = 3 / (1 + math.sqrt(3 / r)) ** 2
    each = math.ceil((r + m) / (8 * shortfall) / domains - 1e-9)
    return DomainTheory(
        invariant=r,
        environmental=m,
        gamma=gamma,
        decay=decay,
        strength=strength,
        weight_decay=_judged(r, m, gamma, _decayed(r, m, gamma, decay)),
        nuclear_norm=_judged(r, m, gamma, _penalised(r, m, gamma, strength)),
        least_invariant=enough,
        least_dimension=math.floor(max(r, enough) * (1 / gamma**2 + 1) + 1e-9) + 1,
        alpha_bound=1 / math.sqrt(r),
        ratio_bound=3 / (4 * gamma),
        outside_bound=math.exp(-r / 10),
        gamma_limit=math.sqrt(most / 3 / (1 + most)),
        rows=each * domains,
        rows_per_domain=each,
        lam=strength * math.sqrt(each * domains),
        # Few rows are nearly orthogonal: weights go with mean over variance, and the mean margin outside decides.
        few_rows_suffice=6 * (1 / 3 - gamma**2) / gamma > 2 * gamma * m / r,
    )


def _decayed(r: int, m: int, gamma: float, decay: float) -> np.ndarray:
    counts = decay * np.array([r, m], dtype=float)

    def objective(weights: np.ndarray) -> Values:
        value, slope, curvature = _loss(r, m, gamma, weights)
        return value + weights @ (counts * weights) / 2, slope + counts * weights, curvature + np.diag(counts)

    return _newton(objective, np.full(2, 0.5 / math.sqrt(r + m)), np.array([True, True]))


def _penalised(r: int, m: int, gamma: float, strength: float) -> np.ndarray:
    """The problem is convex: nothing is learned where the norm rises faster than the loss falls in every direction, and
    environmental features are out exactly where the slope towards them is not negative at the best α without them."""
    angles = np.linspace(0, math.pi / 2, 2001)
    gains = [(r / 2 * math.cos(a) + m * gamma * math.sin(a)) / 2 for a in angles]  # by which the loss falls from 0
    prices = [strength * _norm(r, m, gamma, np.array([math.cos(a), math.sin(a)]))[0] for a in angles]
    best = int(np.argmax(np.array(gains) / np.array(prices)))
    if gains[best] <= prices[best]:
        return np.zeros(2)

    def objective(weights: np.ndarray) -> Values:
        value, slope, curvature = _loss(r, m, gamma, weights)
        price, dearer, bent = _norm(r, m, gamma, weights)
        return value + strength * price, slope + strength * dearer, curvature + strength * bent

    if gains[0] > prices[0]:
        alone = _newton(objective, np.array([0.5 / math.sqrt(r), 0.0]), np.array([True, False]))
        if objective(alone)[1][1] >= 0:
            return alone
    start = np.clip([math.cos(angles[best]), math.sin(angles[best])], 1e-2, None) / (2 * math.sqrt(r + m))
    return _newton(objective, start, np.array([True, True]))


def _newton(objective: Callable[[np.ndarray], Values], start: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The minimum of a convex function over those of the two weights that are free; they stay positive. A step may
    raise the value by what rounding leaves of it, since the slope is known far better."""
    at = start.astype(float)
    value, slope, curvature = objective(at)
    for _ in range(200):
        move = np.zeros(2)
        move[free] = -np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        move = move if move @ slope < 0 else np.where(free, -slope, 0.0)
        size = 1.0
        while size > 1e-12:
            new = at + size * move
            if (new[free] > 0).all() and (after := objective(new))[0] <= value + ROUNDING:
                break
            size /= 2
        else:
            break
        done = np.abs(new - at).max() <= 1e-9 * np.abs(at).max()
        at, (value, slope, curvature) = new, after
        if done:
            break
    return at


def _norm(r: int, m: int, gamma: float, weights: np.ndarray) -> Values:
    """lim ‖Z·diag(w)‖_*/√rows: all but one singular value of each kind are a feature's deviation, and the last of both
    are those of a 2 × 2 matrix K with tr K^{1/2} = (tr K + 2·√det K)^{1/2}."""
    flat = np.array([(r - 1) * math.sqrt(1 / 12), (m - 1) * math.sqrt(1 / 3 - gamma**2)])
    a, b = 1 / 12 + r / 4, 1 / 3 - gamma**2 + gamma**2 * m
    c = math.sqrt(a * b - gamma**2 * r * m / 4)
    form = np.array([[a, c], [c, b]])
    spike = math.sqrt(weights @ form @ weights)
    slope = form @ weights / spike
    return float(flat @ weights) + spike, flat + slope, (form - np.outer(slope, slope)) / spike


def _loss(r: int, m: int, gamma: float, weights: np.ndarray) -> Values:
    """E ln(1 + e^{−M}) = ln 2 − E M/2 + ∫₀^∞ (1 − Re φ_M(t))/(t·sinh πt) dt, since ln(2·cosh(x/2)) is
    ln 2 + ∫₀^∞ (1 − cos tx)/(t·sinh πt) dt. The midpoint rule has converged once 2π over its step passes the largest
    |M| by the 40 in which e^{−x} is gone."""
    counts = np.array([r, m], dtype=float)
    step = 2 * math.pi / (float(counts @ weights) + 40)
    t = (np.arange(math.ceil(END / step)) + 0.5) * step
    share = step / (t * np.sinh(math.pi * t))
    phi, means = _transform(r, m, gamma, weights, t), counts * [0.5, gamma]
    value = math.log(2) - float(means @ weights) / 2 + float(share @ (1 - phi.real))
    # The derivatives of ln φ_M by α and β, (2, points): it is a sum of a term in each.
    one, other = _log_slopes(weights[0] * t, 0.5), _log_slopes(weights[1] * t, gamma)
    first = np.stack([r * t * one[0], m * t * other[0]])
    second = np.stack([r * t**2 * one[1], m * t**2 * other[1]])
    slope = -means / 2 - (first * phi).real @ share
    curvature = -((first[:, None] * first + np.eye(2)[..., None] * second) * phi).real @ share
    return value, slope, curvature


def _transform(r: int, m: int, gamma: float, weights: np.ndarray, t: np.ndarray) -> np.ndarray:
    """φ_M(t) = E e^{itM}. One feature has sin(s/2)/(s/2)·(cos(s/2) + 2iγ·sin(s/2)), with γ = ½ where invariant."""
    found = np.ones(len(t), dtype=complex)
    for count, weight, g in ((r, weights[0], 0.5), (m, weights[1], gamma)):
        half = weight * t / 2
        found = found * (np.sinc(half / math.pi) * (np.cos(half) + 2j * g * np.sin(half))) ** count
    return found


def _log_slopes(s: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """The first two derivatives of ln φ(s) of one feature."""
    half, near = s / 2, np.abs(s) < 0.02
    far = np.where(near, 1.0, s)
    shape = np.where(near, -s / 12 - s**3 / 720, 0.5 / np.tan(far / 2) - 1 / far)  # of sin(s/2)/(s/2)
    bent = np.where(near, -1 / 12 - s**2 / 240, -0.25 / np.sin(far / 2) ** 2 + 1 / far**2)
    signs = np.cos(half) + 2j * gamma * np.sin(half)
    turn = (-0.5 * np.sin(half) + 1j * gamma * np.cos(half)) / signs
    return shape + turn, bent - 0.25 - turn**2


def _judged(r: int, m: int, gamma: float, weights: np.ndarray) -> DomainOptimum:
    inside, outside = (_accuracy(r, m, g, weights) for g in (gamma, -gamma))
    return DomainOptimum(float(weights[0]), float(weights[1]), inside, outside)


def _accuracy(r: int, m: int, gamma: float, weights: np.ndarray) -> float:
    """P(M > 0) = ½ + Σ_k Im φ_M(t_k)/(π·(k + ½)) at t_k = (k + ½)·π/L, exactly, where |M| is at most L."""
    if not weights[1]:
        return 1.0 if weights[0] else 0.5
    k = np.arange(TERMS) + 0.5
    phi = _transform(r, m, gamma, weights, k * math.pi / (r * weights[0] + m * weights[1]))
    return round(min(1.0, max(0.0, 0.5 + float((phi.imag / k).sum()) / math.pi)), DIGITS)
