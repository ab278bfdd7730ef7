"""How many random neurons have their first gradient near a feature: p of the XOR mixture as a number, and what the
theory promises in each case with its constants set to 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..problem import LinearData


@dataclass(frozen=True)
class Promise:
    """(D, s) is a gradient feature: a share p of neurons has gradients in the cone of width γ, of norm B_G or more."""

    share: float
    width: float
    floor: float


def linear_promise(dim: int, second_moment: float, signal: float, tau: float) -> Promise:
    """Neurons that are always active: p = 1/2, γ = √B_x2/(ρd^(τ/2 − 1/4)), B_G = ρ less √B_x2·d^(1/4 − τ/2)."""
    off = math.sqrt(second_moment) * math.pow(dim, 0.25 - tau / 2)
    return Promise(0.5, off / signal, signal - off)


def mixture_promise(dim: int, scaled_mean: float, spread: float, least_weight: float, tau: float) -> Promise:
    """p = B_μ1/(√(τ log d)·σ)·d^(−9τσ²/(2B_μ1²)), γ = d^(1.5 − 0.9τ), B_G = p_B·B_μ1·√d less σd^(−0.9τ)."""
    share = scaled_mean / (math.sqrt(tau * math.log(dim)) * spread)
    share *= math.pow(dim, -4.5 * tau * (spread / scaled_mean) ** 2)
    floor = least_weight * scaled_mean * math.sqrt(dim) - spread * math.pow(dim, -0.9 * tau)
    return Promise(share, math.pow(dim, 1.5 - 0.9 * tau), floor)


def block_promise(dim: int, size: int, blocks: int, structured: float, tau: float) -> Promise:
    """p = d^(−9τr/8)/√(τr log d), γ = d^(2 − τ), B_G = √k·(p_A − d^(−τ))."""
    share = math.pow(dim, -9 * tau * blocks / 8) / math.sqrt(tau * blocks * math.log(dim))
    return Promise(share, math.pow(dim, 2 - tau), math.sqrt(size) * (structured - math.pow(dim, -tau)))


def promised(tau: float) -> dict[str, Promise]:
    """For the problems of ``first_gradients``, by its names for them."""
    mixture = mixture_promise(100, scaled_mean=1.0, spread=1.0, least_weight=1 / 8, tau=tau)
    linear = LinearData(100, margin=0.5)
    return {
        "linear": linear_promise(linear.dim, linear.typical_norm() ** 2, linear.signal, tau),
        "orthogonal": mixture,
        "multi-xor": mixture,
        "block parity": block_promise(50, size=5, blocks=1, structured=0.25, tau=tau),
    }


def xor_share(dim: int, deviation: float, threshold: float, width: float, floor: float, points: int = 1500) -> float:
    """The probability p that the exact first gradient of a neuron with standard normal weights lies in the two-sided
    cone of width γ around one feature of the XOR mixture, with a norm of at least ``floor``.

    Only the two weights along the features matter, and the length of all others, which is taken to be √(d − 2): with
    z = ⟨w, D⟩ the gradient is √d/4·[Φ(α₊) − Φ(α₋)] along each feature, of opposite signs, and σ times a quarter of the
    difference of the densities along w itself, α_± = (±√d·z − b)/(σ‖w‖). The sum is over a grid of both weights."""
    return axis_share(dim, deviation, deviation, threshold, width, floor, points)


def axis_share(
    dim: int,
    own_deviation: float,
    other_deviation: float,
    threshold: float,
    width: float,
    floor: float,
    points: int = 800,
) -> float:
    """The same for the feature of one axis where the noise on the two axes differs: σ of ``own_deviation`` in the terms
    of that axis, of ``other_deviation`` in those of the other. Without a floor, give 0."""
    edges = torch.linspace(-6, 6, points + 1, dtype=torch.float64)
    mass = torch.special.ndtr(edges).diff()
    middle = (edges[1:] + edges[:-1]) / 2
    own, other = torch.meshgrid(middle, middle, indexing="ij")
    size = (own.square() + other.square() + dim - 2).sqrt()
    rise, density = _along(own, size, math.sqrt(dim), own_deviation, threshold)
    other_rise, other_density = _along(other, size, math.sqrt(dim), other_deviation, threshold)
    along = (own_deviation * density - other_deviation * other_density) / size
    first, second = rise + along * own, along * other - other_rise
    norm = (first.square() + second.square() + along.square() * (dim - 2)).sqrt()
    caught = (first.abs() > (1 - width) * norm) & (norm >= floor)
    return float(mass @ caught.double() @ mass)


def _along(z: Tensor, size: Tensor, root: float, deviation: float, threshold: float) -> tuple[Tensor, Tensor]:
    """√d/4·[Φ(α₊) − Φ(α₋)] and [φ(α₊) + φ(α₋)]/4 of one feature."""
    up, down = ((sign * root * z - threshold) / (deviation * size) for sign in (1, -1))
    densities = [(-alpha.square() / 2).exp() / math.sqrt(2 * math.pi) for alpha in (up, down)]
    return root / 4 * (torch.special.ndtr(up) - torch.special.ndtr(down)), (densities[0] + densities[1]) / 4
