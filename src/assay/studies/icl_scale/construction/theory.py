"""Sums of ReLU heads that solve in-context parity: the source's two constructions, and better ones.

A head reads z = Σ yφ/N with the query φ: a·ReLU(zᵀVφ), with V in the basis of the hidden signs. Norms are in units of
1/(4γ²), so that γ drops out. Numbers are of section 5.5 and appendix D.3.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .problem import PATTERNS, SparseParity, low_bits_apart


@dataclass(frozen=True)
class Heads:
    """Signs a (m,) and matrices V (m, d, d)."""

    a: Tensor
    V: Tensor

    def __post_init__(self) -> None:
        if bool((self.a.abs() > 1).any()):
            raise ValueError("a head's output weight must lie between −1 and 1")

    @classmethod
    def diagonal(cls, a: list[float], rows: Tensor) -> Heads:
        return cls(torch.tensor(a, dtype=rows.dtype), torch.diag_embed(rows))

    @property
    def diagonals(self) -> Tensor:
        """D (d, m): the columns are the diagonals of the heads."""
        return self.V.diagonal(dim1=1, dim2=2).T

    def squared_norm(self, gamma: float) -> float:
        """4γ²Σ‖V‖²_F."""
        return float(4 * gamma**2 * self.V.square().sum())

    def in_basis(self, G: Tensor) -> Heads:
        """W = GVGᵀ, for inputs x = Gφ."""
        return replace(self, V=G @ self.V @ G.T)

    def __call__(self, z: Tensor, phi: Tensor) -> Tensor:
        """Outputs (...,) on what was read and the query, both (..., d)."""
        asked = torch.einsum("...i,mij,...j->...m", z, self.V, phi)
        return torch.relu(asked) @ self.a

    def on_products(self, u: Tensor) -> Tensor:
        """The same for diagonal heads, from u = z ⊙ φ (..., d)."""
        return torch.relu(u @ self.diagonals) @ self.a


def constructed(problem: SparseParity, bits: int, scale: float | None = None) -> Heads:
    """Theorem 5.5.1: for each of the lowest ``bits`` a negative head with signs 2·bit − 1, one positive head with
    −``scale`` (``bits`` in the source) on all, all over 4γ, and the mirror image of each."""
    index = torch.arange(problem.dim)
    rows = [2.0 * ((index // 2**b) % 2) - 1 for b in range(bits)]
    rows.append(torch.full((problem.dim,), -float(bits if scale is None else scale)))
    half = torch.stack(rows).double() / (4 * problem.gamma)
    a = [-1.0] * bits + [1.0]
    return Heads.diagonal([*a, *a], torch.cat([half, -half]))


def four_heads(problem: SparseParity) -> Heads:
    """Four heads that solve every task: negative ±diag(i − (d+1)/2), positive ±(d−1)/2 · I, all over 2γ."""
    d = problem.dim
    slope = torch.arange(1, d + 1, dtype=torch.float64) - (d + 1) / 2
    level = torch.full((d,), (d - 1) / 2, dtype=torch.float64)
    return Heads.diagonal([-1, -1, 1, 1], torch.stack([slope, -slope, level, -level]) / (2 * problem.gamma))


def centred_heads(problem: SparseParity) -> Heads:
    """d + 2 heads that solve every task: negative eₙ − 1/d for each n, positive ±I, all over 2γ. (The norm of the
    source's network is 12 at d = 4, that of this one 11.)"""
    d = problem.dim
    negative = torch.eye(d, dtype=torch.float64) - 1 / d
    level = torch.ones(1, d, dtype=torch.float64)
    rows = torch.cat([negative, level, -level]) / (2 * problem.gamma)
    return Heads.diagonal([*[-1.0] * d, 1.0, 1.0], rows)


def spread_over_rows(heads: Heads) -> Heads:
    """Each diagonal head shared by all rows, V_il = diag(V)_l/d: for d = 2 the same outputs from half the norm."""
    d = heads.V.shape[-1]
    return replace(heads, V=heads.diagonals.T.unsqueeze(1).expand(-1, d, -1) / d)


def margins(heads: Heads, problem: SparseParity, tasks: Tensor) -> Tensor:
    """y·g on every pattern of every task in the limit of long prompts: (tasks, 4)."""
    phi, labels = problem.queries(tasks)
    return labels * heads(problem.reads(tasks).unsqueeze(1), phi)


def hinge_loss(heads: Heads, problem: SparseParity, which: str) -> float:
    """The mean hinge loss over the tasks of a set, in the limit of long prompts."""
    losses = (1 - margins(heads, problem, problem.tasks(which))).clamp(min=0) @ problem.probabilities
    return float(losses.mean())


def apart(problem: SparseParity, bits: int, which: str = "all") -> Tensor:
    """y·g of the construction by its exact formula, H_bits(i, j): (tasks,)."""
    return low_bits_apart(problem.tasks(which), bits)


def share_alike(problem: SparseParity) -> float:
    """The share of rare tasks whose lowest important_bits bits agree: d(d/k − 1)/(d(d−1) − k(k−1))."""
    d, k = problem.dim, problem.important
    return d * (d / k - 1) / (d * (d - 1) - k * (k - 1))


def squared_norm(problem: SparseParity, bits: int) -> float:
    """4γ²Σ‖V‖² of the construction: dν(ν + 1)/2."""
    return problem.dim * bits * (bits + 1) / 2


def largest_rare_rate(problem: SparseParity) -> float:
    """The theorem's condition p_T < (¼ − γ)/(d(d−1)/2·(¼ + γ) + ¼ − γ)."""
    least = 0.25 - problem.gamma
    return least / (problem.dim * (problem.dim - 1) / 2 * (0.25 + problem.gamma) + least)


def projection(heads: Heads) -> Tensor:
    """P (d, d) onto the span of the diagonals, by the pseudo-inverse: mirrored heads make DᵀD singular."""
    D = heads.diagonals
    onto: Tensor = D @ torch.linalg.pinv(D)
    return onto


def sign_class_optimum(problem: SparseParity) -> tuple[float, Any]:
    """The lowest loss of four heads V = c·diag(±1) that solve the important task of k = 2, over every choice of the
    other signs: (loss, scales 4γc). Each choice is a linear programme in the scales and the hinge's slack."""
    from scipy.optimize import linprog

    if problem.important != 2:
        raise ValueError("the four heads of the sign class are those of two important signs")
    a = np.array([-1.0, -1.0, 1.0, 1.0])
    fixed = np.array([[-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    tasks = problem.tasks("all")
    tasks = tasks[tasks[:, 0] < tasks[:, 1]]
    rare = (tasks >= 2).any(1).numpy()
    per_task = np.where(rare, problem.rare / rare.sum(), 1 - problem.rare)
    weights = (per_task[:, None] * problem.probabilities.numpy()).ravel()
    labels = np.tile(PATTERNS.prod(1).numpy(), len(tasks))
    i, j, signs = tasks[:, 0].numpy(), tasks[:, 1].numpy(), PATTERNS.numpy()
    best: tuple[float, Any] = (np.inf, None)
    for rest in itertools.product((-1.0, 1.0), repeat=4 * (problem.dim - 2)):
        V = np.concatenate([fixed, np.reshape(rest, (4, -1))], 1)
        # With scales in units of 1/(4γ) a head reads ½(φᵢVᵢ + φⱼVⱼ).
        asked = 0.5 * (V[:, i, None] * signs[:, 0] + V[:, j, None] * signs[:, 1])  # (heads, tasks, patterns)
        gain = labels[:, None] * (a[:, None] * np.maximum(asked.reshape(4, -1), 0)).T
        rows = np.hstack([-gain, -np.eye(len(weights))])
        cost = np.concatenate([np.zeros(4), weights])
        found = linprog(cost, A_ub=rows, b_ub=-np.ones(len(weights)), method="highs")
        if found.fun < best[0] - 1e-12:
            best = (float(found.fun), found.x[:4])
    return best
