"""Data whose features are known: hidden states that augmentations keep or redraw, finite and linear.

``z_R`` is kept by the augmentations (invariant), ``z_U`` is drawn anew (spurious). In the finite model every
expectation is a sum. In the linear model each of T tasks has features of its own beside those that all tasks share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from assay.training import Seeds

Loss = Callable[[Tensor], Tensor]
Generation = Literal["identity", "rotation", "relu", "lookup"]


def check_shares(name: str, values: Sequence[float]) -> None:
    """Refuse what is no distribution with a positive share for each."""
    if not values or min(values) <= 0 or not math.isclose(sum(values), 1, abs_tol=1e-9):
        raise ValueError(f"{name} must be positive and sum to 1, not {tuple(values)}")


@dataclass(frozen=True)
class FiniteModel:
    """z_R and z_U are independent and take finitely many values, with these probabilities. A representation is a table
    (..., values of z_R, values of z_U, dim). With ``kept`` the positive view keeps z_U, too: nothing is spurious."""

    invariant: tuple[float, ...]
    spurious: tuple[float, ...] = (1.0,)
    kept: bool = False

    def __post_init__(self) -> None:
        check_shares("probabilities of z_R", self.invariant)
        check_shares("probabilities of z_U", self.spurious)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.invariant), len(self.spurious)

    def shares(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return like.new_tensor(self.invariant), like.new_tensor(self.spurious)

    def loss(self, table: Tensor, loss: Loss) -> Tensor:
        """E ℓ(φ(x)ᵀ(φ(x⁺) − φ(x⁻))), as a sum over all triples: (...) for tables (..., R, U, dim)."""
        p, q = self.shares(table)
        flat = table.flatten(-3, -2)
        similar = (flat @ flat.mT).reshape(*table.shape[:-3], *self.shape, *self.shape)  # (..., a, u, b, v)
        own = similar.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)  # (..., a, u, u⁺)
        if self.kept:
            own = own.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)  # (..., a, u, 1)
            weights = torch.einsum("a,u,b,v->aubv", p, q, p, q).unsqueeze(2)
        else:
            weights = torch.einsum("a,u,w,b,v->auwbv", p, q, q, p, q)
        margins = own[..., None, None] - similar.unsqueeze(-3)
        return (loss(margins) * weights).sum((-5, -4, -3, -2, -1))

    def averaged(self, table: Tensor) -> Tensor:
        """φ_{z_R} = E[φ(x) | z_R]: (..., R, dim)."""
        return torch.einsum("...aud,u->...ad", table, self.shares(table)[1])

    def spread(self, table: Tensor) -> Tensor:
        """E‖φ_{z_R} − φ₀‖²: the variance of the averaged representation."""
        p = self.shares(table)[0]
        means = self.averaged(table)
        centre = torch.einsum("...ad,a->...d", means, p).unsqueeze(-2)
        return torch.einsum("...ad,a->...", (means - centre).square(), p)

    def variation(self, table: Tensor) -> Tensor:
        """E‖φ(x) − φ_{z_R}‖²: what is left of z_U."""
        p, q = self.shares(table)
        around = table - self.averaged(table).unsqueeze(-2)
        return torch.einsum("...aud,a,u->...", around.square(), p, q)

    def triples(self, seeds: Seeds, name: str, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Draws of x, x⁺ and x⁻ as indices (seeds, count, 2) of (z_R, z_U)."""

        def draw(part: str, shares: tuple[float, ...]) -> Tensor:
            weights = torch.tensor(shares)
            return seeds.draw(f"{name}, {part}", lambda g: torch.multinomial(weights, count, True, generator=g))

        a, b = draw("z_R", self.invariant), draw("z_R of the negative", self.invariant)
        u, w, v = (draw(f"z_U of {who}", self.spurious) for who in ("x", "the positive", "the negative"))
        w = u if self.kept else w
        return torch.stack([a, u], -1), torch.stack([a, w], -1), torch.stack([b, v], -1)

    def inputs(self, seeds: Seeds, how: Generation, *, dim: int = 3, spread: float = 2.0) -> Tensor:
        """x = g(z) for every state: (seeds, R, U, input dim). z_R and z_U are vectors of ``dim`` drawn for each value,
        those of z_U ``spread`` times as long; g leaves them, turns them, sends them through a random ReLU layer, or
        looks up a unit vector for each state."""
        rows, columns = self.shape
        if how == "lookup":
            states = torch.arange(rows * columns, device=seeds.device).view(rows, columns)
            return one_hot(states).to(seeds.dtype).expand(len(seeds), -1, -1, -1)
        invariant = seeds.normal("values of z_R", rows, dim).unsqueeze(2).expand(-1, -1, columns, -1)
        spurious = spread * seeds.normal("values of z_U", columns, dim).unsqueeze(1).expand(-1, rows, -1, -1)
        hidden = torch.cat([invariant, spurious], -1)
        if how == "identity":
            return hidden
        if how == "rotation":
            turn = torch.linalg.qr(seeds.normal("rotation", 2 * dim, 2 * dim))[0]
            return torch.einsum("saud,sed->saue", hidden, turn)
        layer = seeds.normal("layer", 8 * dim, 2 * dim) / math.sqrt(dim)
        return torch.einsum("saud,sed->saue", hidden, layer).relu()


@dataclass(frozen=True)
class LinearTasks:
    """T tasks with s shared and r − s private features each, all normal; x = Mz with orthonormal M. Features of other
    tasks are 0, and ``spurious`` coordinates are drawn anew in the second view. ``mixture`` has the tasks' shares in
    the pretraining data, even ones where it is empty; the scales are the standard deviations of shared, private and
    spurious features in the data of each task, 1 where they are empty."""

    shared: int
    relevant: int
    tasks: int
    spurious: int = 4
    mixture: tuple[float, ...] = field(default=())
    shared_scales: tuple[float, ...] = field(default=())
    private_scales: tuple[float, ...] = field(default=())
    spurious_scales: tuple[float, ...] = field(default=())

    def __post_init__(self) -> None:
        if not 1 <= self.shared <= self.relevant:
            raise ValueError(f"a task has s shared of r features, 1 ≤ s ≤ r, not {self.shared} of {self.relevant}")
        if self.shared == self.relevant and self.tasks > 1:
            raise ValueError("tasks without private features (s = r) are one task: T must be 1")
        if self.tasks < 1 or self.spurious < 0:
            raise ValueError("there must be at least one task and no negative number of spurious features")
        if self.mixture and len(self.mixture) != self.tasks:
            raise ValueError(f"a mixture of {self.tasks} tasks needs as many shares, not {len(self.mixture)}")
        check_shares("shares of a mixture", self.weights)
        for name in ("shared_scales", "private_scales", "spurious_scales"):
            given = getattr(self, name)
            if given and (len(given) != self.tasks or not all(0 < scale < math.inf for scale in given)):
                raise ValueError(f"{name} must be {self.tasks} finite numbers above 0, one for each task, not {given}")

    def scales(self, task: int) -> tuple[float, float, float]:
        """Standard deviations of the shared, the private and the spurious features in the data of a task."""
        given = (self.shared_scales, self.private_scales, self.spurious_scales)
        shared, private, spurious = (each[task] if each else 1.0 for each in given)
        return shared, private, spurious

    @property
    def weights(self) -> tuple[float, ...]:
        return self.mixture or (1 / self.tasks,) * self.tasks

    @property
    def private(self) -> int:
        return self.relevant - self.shared

    @property
    def features(self) -> int:
        """k = s + T(r − s), all invariant features."""
        return self.shared + self.tasks * self.private

    @property
    def dim(self) -> int:
        return self.features + self.spurious

    def own(self, task: int) -> list[int]:
        """R_t: the coordinates of the shared features and of the task's own."""
        if not 0 <= task < self.tasks:
            raise ValueError(f"tasks are numbered from 0 to {self.tasks - 1}, and {task} is none of them")
        start = self.shared + task * self.private
        return [*range(self.shared), *range(start, start + self.private)]

    def basis(self, seeds: Seeds) -> Tensor:
        """M (seeds, d, d)."""
        turned: Tensor = torch.linalg.qr(seeds.normal("basis", self.dim, self.dim))[0]
        return turned

    def pairs(self, seeds: Seeds, name: str, count: int, task: int | None = None) -> tuple[Tensor, Tensor]:
        """Hidden states z and z⁺ (seeds, count, d), from the mixture or from one task."""
        normal = seeds.normal(name, count, self.dim + self.spurious)
        if task is None:
            shares = torch.tensor(self.weights)
            tasks = seeds.draw(f"{name}, tasks", lambda g: torch.multinomial(shares, count, True, generator=g))
        else:
            tasks = torch.full((len(seeds), count), task, device=seeds.device)
        table = torch.zeros(self.tasks, self.dim + self.spurious, device=seeds.device, dtype=seeds.dtype)
        for t in range(self.tasks):
            own, (shared, private, spurious) = self.own(t), self.scales(t)
            table[t, own[: self.shared]], table[t, own[self.shared :]] = shared, private
            table[t, self.features :] = spurious
        scaled = normal * table[tasks]
        invariant, first = scaled[..., : self.features], scaled[..., self.features : self.dim]
        second = scaled[..., self.dim :]
        return torch.cat([invariant, first], -1), torch.cat([invariant, second], -1)

    def label_weights(self, seeds: Seeds, name: str, private: float, *, draws: int) -> Tensor:
        """u* (seeds, draws, r) of norm 1: a random direction in each block, with v₂ = ``private`` on the private one
        and v₁ = 1 − v₂ on the shared one."""
        if not 0 <= private <= 1:
            raise ValueError(f"the private share of the label must lie in [0, 1], not {private}")
        drawn = seeds.normal(name, draws, self.relevant)
        blocks = drawn[..., : self.shared], drawn[..., self.shared :]
        sizes = (math.sqrt(1 - private), math.sqrt(private))
        return torch.cat(
            [size * torch.nn.functional.normalize(b, dim=-1) for b, size in zip(blocks, sizes, strict=True)], -1
        )
