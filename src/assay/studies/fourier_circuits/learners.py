"""Training one-hidden-layer networks with activation z^k, all seeds at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy, embedding_bag

from assay.methods.group_norm import group_norm
from assay.methods.modular_margin import expected_margin, margins, max_margin
from assay.training.seeds import Seeds

from .problem import ModularAddition

Regulariser = Literal["norm", "sum", "decay"]


class _IntegerPower(torch.autograd.Function):
    """z^k that keeps z^{k−1} for its gradient: a third of the memory traffic of the product written out."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, k: int) -> Tensor:
        lower = z
        for _ in range(k - 2):
            lower = lower * z
        ctx.save_for_backward(lower)
        ctx.k = k
        return lower * z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (lower,) = ctx.saved_tensors
        return (gradient * lower).mul_(ctx.k), None


@dataclass(frozen=True)
class Network:
    """A network per seed: U (seeds, k, p, m) and W (seeds, m, p)."""

    U: Tensor
    W: Tensor

    @classmethod
    def initial(cls, problem: ModularAddition, width: int, seeds: Seeds) -> Network:
        """Every entry N(0, 1/p), so that each vector has length about 1; the source does not say."""
        scale = problem.p**-0.5
        inputs = seeds.normal("input weights", problem.k, problem.p, width)
        return cls(scale * inputs, scale * seeds.normal("output weights", width, problem.p))

    def __call__(self, inputs: Tensor) -> Tensor:
        """Logits (seeds, n, p) of inputs (seeds, n, k), a look-up in the tables U."""
        seeds, k, p, m = self.U.shape
        first = p * torch.arange(seeds * k, device=inputs.device).view(seeds, 1, k)
        hidden = embedding_bag((inputs + first).flatten(0, 1), self.U.reshape(seeds * k * p, m), mode="sum")
        powers: Tensor = _IntegerPower.apply(hidden.view(seeds, -1, m), k)  # type: ignore[no-untyped-call]
        return powers @ self.W

    @property
    def squares(self) -> Tensor:
        """‖θ_i‖²: (seeds, m)."""
        return self.U.square().sum((1, 2)) + self.W.square().sum(2)

    def detached(self, dtype: torch.dtype | None = None) -> Network:
        return Network(self.U.detach().to(dtype), self.W.detach().to(dtype))


@dataclass(frozen=True)
class Recipe:
    """Adam on mean cross-entropy plus a regulariser of strength ``penalty``: ``norm`` is λ‖θ‖_{2,k+1} (the source's
    objective), ``sum`` is λΣ_i‖θ_i‖^{k+1}, ``decay`` AdamW's decoupled decay instead. ``batch`` None is full batch."""

    steps: int
    rate: float
    penalty: float
    regulariser: Regulariser = "norm"
    batch: int | None = None
    warmup: int = 10
    betas: tuple[float, float] = (0.9, 0.98)
    every: int = 100

    def __post_init__(self) -> None:
        if self.regulariser not in ("norm", "sum", "decay"):
            raise ValueError(f"unknown regulariser '{self.regulariser}' (allowed: norm, sum, decay)")
        if self.steps < 1 or self.rate <= 0 or self.penalty < 0 or self.every < 1:
            raise ValueError("steps and every must be at least 1, the rate positive and the penalty not negative")

    def cost(self, network: Network) -> Tensor:
        """The regulariser's part of the objective: (seeds,)."""
        order = network.U.shape[1] + 1
        power = {"norm": 1.0, "sum": float(order), "decay": 1.0}[self.regulariser]
        return self.penalty * group_norm(network.squares, order, power)

    def train(
        self, problem: ModularAddition, start: Network, train: Tensor, seeds: Seeds, labels: Tensor | None = None
    ) -> Iterator[tuple[int, Network]]:
        """Yield (step, network) at step 0, every ``every`` steps and at the end, training on flat indices ``train``
        (seeds, n). ``labels`` (seeds, n) replace the sums, for controls."""
        network = Network(start.U.clone().requires_grad_(True), start.W.clone().requires_grad_(True))
        parts = [network.U, network.W]
        decay = self.penalty if self.regulariser == "decay" else 0.0
        optimizer = torch.optim.AdamW(parts, lr=self.rate, betas=self.betas, weight_decay=decay, fused=True)
        yield 0, network.detached()
        for step, index in enumerate(self._batches(train, seeds), start=1):
            flat = train if index is None else train.gather(1, index)
            inputs = problem.inputs(flat)
            targets = problem.labels(inputs)
            if labels is not None:
                targets = labels if index is None else labels.gather(1, index)
            for group in optimizer.param_groups:
                group["lr"] = self.rate * min(1.0, step / max(1, self.warmup))
            objective = mean_loss(network(inputs), targets)
            if self.regulariser != "decay":
                objective = objective + self.cost(network)
            optimizer.zero_grad()
            objective.sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if step % self.every == 0 or step == self.steps:
                yield step, network.detached()

    def _batches(self, train: Tensor, seeds: Seeds) -> Iterator[Tensor | None]:
        if self.batch is None:
            return iter([None] * self.steps)
        return seeds.batches("batches", train.shape[1], min(self.batch, train.shape[1]), self.steps)


def mean_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of every seed: (seeds,)."""
    losses = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view(targets.shape).mean(1)


@dataclass(frozen=True)
class Look:
    """A network on so many inputs, per seed: accuracy, cross-entropy, smallest and mean margin of the raw network."""

    inputs: int
    accuracy: Tensor
    loss: Tensor
    least_margin: Tensor
    mean_margin: Tensor


def look(problem: ModularAddition, network: Network, flat: Tensor) -> Look:
    """Read the network on flat indices (seeds, n), in pieces that fit into memory, in float64."""
    exact = network.detached(torch.float64)
    seeds, m = exact.W.shape[:2]
    piece = max(1, 2**25 // (seeds * max(m, problem.p)))
    right, loss, total = (torch.zeros(seeds, dtype=torch.float64, device=flat.device) for _ in range(3))
    least = torch.full_like(total, math.inf)
    for part in torch.split(flat, piece, dim=1):
        inputs = problem.inputs(part)
        logits, labels = exact(inputs), problem.labels(inputs)
        found = margins(logits, labels)
        right = right + (found > 0).double().sum(1)
        loss = loss + mean_loss(logits, labels) * part.shape[1]
        total = total + found.sum(1)
        least = torch.minimum(least, found.amin(1))
    n = flat.shape[1]
    return Look(n, right / n, loss / n, least, total / n)


def margin_ratios(network: Network, seen: Look) -> dict[str, Tensor]:
    """Smallest and mean margin of a look, and J, over γ*‖θ‖^{k+1}: (seeds,) each."""
    k, p = network.U.shape[1:3]
    exact = network.detached(torch.float64)
    bound = max_margin(p, k) * exact.squares.pow((k + 1) / 2).sum(1)
    return {
        "margin_ratio": seen.least_margin / bound,
        "mean_margin_ratio": seen.mean_margin / bound,
        "alignment_ratio": expected_margin(exact.U, exact.W) / bound,
    }
