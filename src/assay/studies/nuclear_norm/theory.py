"""Sums of features with their exact laws, and convex problems in the two weights that all features of a kind share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, hessian
from torch.nn.functional import softplus

from .problem import Environments

NODES = {1: 24, 2: 12}  # Gauss–Legendre nodes for each piece of a feature, by the number of features in a sum
WIDTH = 12  # half of the grid of a sum of many features, in its standard deviations
SMOOTH = 12  # from so many features on a density is smooth enough for 8 points per deviation, else it has 20


@dataclass(frozen=True)
class SumLaw:
    """The law of a sum of independent features, as points (n,) with probabilities (n,) for expectations."""

    points: Tensor
    weights: Tensor

    @classmethod
    def of(cls, count: int, gamma: float = 0.5) -> SumLaw:
        """``count`` features that agree with the label with probability ½ + γ; γ = ½ are the invariant ones. Few are a
        product of Gauss–Legendre rules; the density of many is their characteristic function turned back."""
        if count == 0:
            return cls(torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
        points, weights = _few(count, gamma) if count in NODES else _many(count, gamma)
        kept = weights > 0
        return cls(torch.from_numpy(points[kept]), torch.from_numpy(weights[kept]))


@dataclass(frozen=True)
class TwoKinds:
    """The margin α·S_R + β·S_U in the training domain: sums of so many invariant and environmental features."""

    invariant: SumLaw
    environmental: SumLaw

    @classmethod
    def of(cls, problem: Environments) -> TwoKinds:
        return _two_kinds(problem.invariant, problem.environmental, problem.gamma)

    def margin(self, weights: Tensor) -> Tensor:
        """(points of S_R, points of S_U) for the two weights (2,)."""
        return weights[0] * self.invariant.points[:, None] + weights[1] * self.environmental.points

    def mean(self, values: Tensor) -> Tensor:
        """The expectation of values on the grid of ``margin``."""
        return self.invariant.weights @ values @ self.environmental.weights

    def loss(self, weights: Tensor) -> Tensor:
        """E ln(1 + exp(−margin))."""
        return self.mean(softplus(-self.margin(weights)))

    def positive(self, weights: Tensor) -> float:
        """The probability that the margin is not negative."""
        return float(self.mean((self.margin(weights) >= 0).double()))


def minimise(objective: Callable[[Tensor], Tensor], start: Tensor, *, steps: int = 200) -> Tensor:
    """The minimum of a smooth convex function of a few positive numbers, by Newton's method with halved steps. The
    numbers stay positive: a minimum on the boundary is the caller's to find."""
    at, value = start.double(), objective(start.double())
    for _ in range(steps):
        slope: Tensor = grad(objective)(at)
        curvature: Tensor = hessian(objective)(at)
        ridge = 1e-14 * curvature.diagonal().abs().max() * torch.eye(len(at), dtype=at.dtype)
        move = -torch.linalg.solve(curvature + ridge, slope)
        move = move if float(move @ slope) < 0 else -slope
        size = 1.0
        while size > 1e-12:
            new = at + size * move
            if bool((new > 0).all()) and float(after := objective(new)) <= float(value):
                break
            size /= 2
        else:
            break
        done = float((new - at).abs().max()) <= 1e-13 * float(at.abs().max())
        at, value = new, after
        if done:
            break
    return at


def log_chernoff(problem: Environments, alpha: float, beta: float, *, wrong: bool = False) -> float:
    """The logarithm of a rigorous upper bound on the probability of a margin ≥ 0 outside the training domain, or, with
    ``wrong``, of one below 0: the least exp(K(θ)) over θ, where K is the exact cumulant generating function."""
    side = -1.0 if wrong else 1.0
    exponents = torch.logspace(-6, 6, 4001, dtype=torch.float64)  # θ times the larger weight
    theta = side * exponents / max(alpha, beta)
    found = problem.invariant * _log_mgf(theta * alpha, 0.5)
    found = found + problem.environmental * _log_mgf(theta * beta, -problem.gamma)
    return min(0.0, float(found.min()))


def gaussian_log_accuracy(problem: Environments, alpha: float, beta: float) -> float:
    """The logarithm of the out-of-domain accuracy where sums are taken as Gaussian."""
    r, m, gamma = problem.invariant, problem.environmental, problem.gamma
    mean = alpha * r / 2 - beta * m * gamma
    variance = alpha**2 * r / 12 + beta**2 * m * (1 / 3 - gamma**2)
    return float(torch.special.log_ndtr(torch.tensor(mean / math.sqrt(variance), dtype=torch.float64)))


def _log_mgf(s: Tensor, gamma: float) -> Tensor:
    """ln E exp(s·z) of one feature that agrees with the label with probability ½ + γ."""
    half = s.abs() / 2
    # sinh(h)/h, with its limit near 0 and its growth taken out of the logarithm.
    shape = half + torch.where(half > 1e-4, torch.log(-torch.expm1(-2 * half) / (2 * half)), half**2 / 6 - half)
    return torch.logaddexp(_log(0.5 + gamma) + s / 2, _log(0.5 - gamma) - s / 2) + shape


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


@lru_cache(maxsize=64)
def _two_kinds(invariant: int, environmental: int, gamma: float) -> TwoKinds:
    return TwoKinds(SumLaw.of(invariant), SumLaw.of(environmental, gamma))


def _few(count: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    nodes, shares = np.polynomial.legendre.leggauss(NODES.get(count, 12))
    up, shares = (nodes + 1) / 2, shares / 2
    points, weights = np.concatenate([up, -up]), np.concatenate([(0.5 + gamma) * shares, (0.5 - gamma) * shares])
    total, chance = points, weights
    for _ in range(count - 1):
        total = np.add.outer(total, points).ravel()
        chance = np.multiply.outer(chance, weights).ravel()
    return total, chance


def _many(count: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """The density on a grid: the Fourier series of a law that repeats beyond ``WIDTH`` deviations."""
    mean = 0.5 if gamma == 0.5 else gamma
    deviation = math.sqrt(count * (1 / 3 - mean**2))
    fineness = 8 if count >= SMOOTH else 20
    size, step = 2 * WIDTH * fineness, deviation / fineness
    offsets = (np.arange(size) - size // 2) * step
    frequencies = 2 * np.pi * np.fft.fftfreq(size, step)
    one = np.sinc(frequencies / (2 * np.pi))  # of a magnitude around its middle
    one = one * ((0.5 + gamma) * np.exp(0.5j * frequencies) + (0.5 - gamma) * np.exp(-0.5j * frequencies))
    centred = (one * np.exp(-1j * frequencies * mean)) ** count
    density = np.fft.fftshift(np.fft.fft(centred)).real / size
    points = offsets + count * mean
    inside = (points <= count) & (points >= (0.0 if gamma == 0.5 else -count))
    density = np.where(inside & (density > 1e-18), density, 0.0)
    return points, density / density.sum()
