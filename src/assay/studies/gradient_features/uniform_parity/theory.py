"""Exact first gradients of a uniform parity, from the Fourier coefficients of the majority function."""

from __future__ import annotations

import math
from math import comb

import torch
from torch import Tensor

from .problem import UniformParity


def majority_coefficient(order: int, dim: int) -> float:
    """ξ_s, the Fourier coefficient of the majority of d signs on s of them, for odd s and d:
    (−1)^((s−1)/2)·C((d−1)/2, (s−1)/2)/C(d−1, s−1)·2^(−(d−1))·C(d−1, (d−1)/2)."""
    if order % 2 == 0 or dim % 2 == 0:
        raise ValueError(f"ξ_s is for odd s and odd d, not for s = {order}, d = {dim}")
    half, lower = (dim - 1) // 2, (order - 1) // 2
    size = comb(half, lower) / comb(dim - 1, order - 1) * math.ldexp(comb(dim - 1, half), -(dim - 1))
    return -size if lower % 2 else size


def exact_gradient(problem: UniformParity, weights: Tensor) -> Tensor:
    """G(w, b) for w of signs and |b| < 1, which does not depend on b: ½ξ_{k−1}∏_{A∖j}w_l at j in A, and
    ½ξ_{k+1}·w_j·∏_A w_l elsewhere. (…, dim)."""
    k, d = problem.size, problem.dim
    inside, outside = (majority_coefficient(s, d) / 2 for s in (k - 1, k + 1))
    scale = torch.full((d,), outside).to(weights)
    scale[:k] = inside
    # ∏_{A∖j} w_l = w_j·∏_A w_l for signs, so both cases are w_j·∏_A w_l times their coefficient.
    return weights * weights[..., :k].prod(-1, keepdim=True) * scale


def limit_cosine(problem: UniformParity) -> float:
    """Cosine of the exact gradient with ±w_A/√k, the neuron's own signs on A: (1 + (k − 1)²/(k(d − k)))^(−1/2)."""
    k, d = problem.size, problem.dim
    return 1 / math.sqrt(1 + (k - 1) ** 2 / (k * (d - k)))


def sampled_cosine(problem: UniformParity, samples: int) -> float:
    """The same over n samples. Each coordinate of G̃ has variance 1/(2n), so that 2d/(k·n·ξ²) joins the sum."""
    xi = majority_coefficient(problem.size - 1, problem.dim)
    exact = 1 / limit_cosine(problem) ** 2
    return 1 / math.sqrt(exact + 2 * problem.dim / (problem.size * samples * xi**2))


def samples_for(problem: UniformParity, ratio: float) -> int:
    """The samples n at which n·ξ²/d is ``ratio``."""
    return math.ceil(ratio * problem.dim / majority_coefficient(problem.size - 1, problem.dim) ** 2)


def promised_neurons(size: int) -> int:
    """m = k·2^k·log(20k)."""
    return math.ceil(math.ldexp(size * math.log(20 * size), size))


def parity_signal(problem: UniformParity, knot: float) -> float:
    """E[∏_A x_l·max(0, ⟨ŵ, x⟩ − knot)] of a neuron along its exact gradient, for ∏_A w_l = 1: what one neuron knows of
    the parity. Of ⟨ŵ, x⟩ the sum over A is c·(k − 2j)/√k, c the limit cosine, with chance C(k, j)/2^k and the parity
    (−1)^j; that over the other d − k coordinates, all of one size, has the variance 1 − c²."""
    k, rest, cosine = problem.size, problem.dim - problem.size, limit_cosine(problem)
    step = math.sqrt((1 - cosine**2) / rest)
    found = 0.0
    for j in range(k + 1):
        along = cosine * (k - 2 * j) / math.sqrt(k) - knot
        mean = sum(comb(rest, i) * max(0.0, along + step * (rest - 2 * i)) for i in range(rest + 1))
        found += (-1) ** j * comb(k, j) * mean
    return math.ldexp(found, -problem.dim)


def blind_knot(problem: UniformParity) -> float:
    """The least knot in (0, √k) at which ``parity_signal`` is 0: with every switch at ±it no neuron knows anything of
    the parity. There is one from k = 4 on (a neuron max(0, ⟨w_A, x_A⟩ − κ) of four signs has the coefficient
    (3κ − 4)/16 for κ in [0, 2])."""
    edges = [math.sqrt(problem.size) * i / 64 for i in range(65)]
    values = [parity_signal(problem, edge) for edge in edges]
    turn = next((i for i in range(64) if values[i] * values[i + 1] < 0), None)
    if turn is None:
        raise ValueError(f"neurons see a parity of {problem.size} signs whatever their threshold")
    low, high = edges[turn], edges[turn + 1]
    for _ in range(40):
        middle = (low + high) / 2
        if parity_signal(problem, low) * parity_signal(problem, middle) > 0:
            low = middle
        else:
            high = middle
    return low
