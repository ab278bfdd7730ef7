"""One-layer attention encoders with bilateral ReLUs under InfoNCE: all seeds and cells at once, closed-form gradients.

f(X)_i = Σ_r BReLU_{b_i}(⟨w_i, z_X^{(r)}⟩) with z = Attention(X), identity query, key and value matrices. Uniform
attention makes every z the mean token, so one token with a multiplicity of L stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from assay.probes.specialisation import alignments, smallest_neurons
from assay.training import Seeds

from .problem import Batch, PairStream, TokenPairs
from .theory import printed_bias

Attention = Literal["uniform", "softmax"]


def brelu(s: Tensor, b: Tensor) -> Tensor:
    """BReLU_b(s) = ReLU(s − b) − ReLU(−s − b): odd, 1-Lipschitz, the identity at b = 0."""
    return s - torch.minimum(torch.maximum(s, -b), b)


def attend(tokens: Tensor, attention: Attention, score_scale: float = 1.0) -> Tensor:
    """z^{(r)} of every query token: (..., tokens, dim) → (..., 1, dim) when uniform, else (..., tokens, dim)."""
    if attention == "uniform":
        return tokens if tokens.shape[-2] == 1 else tokens.mean(-2, keepdim=True)
    return (score_scale * tokens @ tokens.mT).softmax(-1) @ tokens


@dataclass(frozen=True)
class Encoders:
    """One encoder per seed and cell: weights (seeds, cells, neurons, dim), biases (seeds, cells, neurons).
    ``multiplicity`` is L where one mean token stands for L equal ones."""

    weights: Tensor
    biases: Tensor
    multiplicity: int = 1

    def __post_init__(self) -> None:
        if bool((self.biases < 0).any()):
            raise ValueError("a bilateral ReLU has no negative bias")

    def preactivations(self, attended: Tensor) -> Tensor:
        """(seeds, cells, batch, tokens, neurons)."""
        flat = attended.flatten(-3, -2)
        return torch.unflatten(flat @ self.weights.mT, -2, attended.shape[-3:-1])

    def __call__(self, attended: Tensor) -> Tensor:
        """f(X): (seeds, cells, batch, neurons)."""
        return self.multiplicity * brelu(self.preactivations(attended), self.biases[..., None, None, :]).sum(-2)


@dataclass(frozen=True)
class Step:
    """The gradient (seeds, cells, neurons, dim) without decay, the softmax P (seeds, cells, batch, batch), the loss."""

    gradient: Tensor
    softmax: Tensor
    loss: Tensor


def infonce_step(
    encoders: Encoders, first: Tensor, second: Tensor, temperature: float, mask: Tensor | None = None
) -> Step:
    """(1/Kτ) Σ_k [Σ_s (P_k(s) − 1[s = k]) h_i(Y_s)] Σ_r 1{|⟨w_i, z⟩| ≥ b_i} z, in-batch negatives, a stop-gradient
    on Y. With a ``mask`` (seeds, cells, neurons) the softmax is that of the masked outputs; h and ∇h stay unmasked."""
    if temperature <= 0:
        raise ValueError(f"the temperature must be positive, not {temperature}")
    if first.shape[-3] < 2:
        raise ValueError("a batch of one has no negatives")
    s = encoders.preactivations(first)
    bias = encoders.biases[..., None, None, :]
    h_x = encoders.multiplicity * brelu(s, bias).sum(-2)
    h_y = encoders(second)
    seen = h_x / temperature if mask is None else h_x / temperature * mask.unsqueeze(-2)
    logits = seen @ h_y.mT  # masking one side is enough: masks are idempotent
    log_softmax = logits.log_softmax(-1)
    loss = -log_softmax.diagonal(dim1=-2, dim2=-1).mean(-1)
    softmax = log_softmax.exp_()
    batch = first.shape[-3]
    pull = (softmax @ h_y - h_y) * (encoders.multiplicity / (batch * temperature))  # (seeds, cells, batch, neurons)
    gated = pull.unsqueeze(-2) * (s.abs() >= bias)
    return Step(gated.flatten(-3, -2).mT @ first.flatten(-3, -2), softmax, loss)


@dataclass(frozen=True)
class Cells:
    """The conditions that train side by side on a seed's draws, one entry each. ``alpha`` is the share of neurons that
    is pruned. With ``straight`` masked neurons get no gradient (straight-through and self-competitor: with masks of
    whole neurons and a stop-gradient both equal the logit-masked gradient times the mask)."""

    rare: Sequence[float]
    deviation: Sequence[float]
    decay: Sequence[float]
    alpha: Sequence[float] = ()
    straight: Sequence[bool] = ()

    def __post_init__(self) -> None:
        count = len(self.rare)
        object.__setattr__(self, "alpha", tuple(self.alpha) or (0.0,) * count)
        object.__setattr__(self, "straight", tuple(self.straight) or (False,) * count)
        if {len(self.deviation), len(self.decay), len(self.alpha), len(self.straight)} != {count}:
            raise ValueError("every cell needs its frequency, deviation, decay, alpha and kind of gradient")

    def masks(self, weights: Tensor) -> Tensor | None:
        """1 where a neuron is kept: (seeds, cells, neurons); None when no cell prunes."""
        if not any(self.alpha):
            return None
        norms = torch.linalg.vector_norm(weights, dim=-1)
        pruned = [smallest_neurons(norms[:, c], alpha) for c, alpha in enumerate(self.alpha)]
        return (~torch.stack(pruned, 1)).to(weights.dtype)


@dataclass(frozen=True)
class Look:
    """What a learner shows along the way; ``mask`` is that of the coming step, ``loss`` that of the last batch."""

    step: int
    encoders: Encoders
    loss: Tensor
    mask: Tensor | None


@dataclass(frozen=True)
class Contrastive:
    """Gradient descent on InfoNCE with the bias schedule of the proofs.

    Biases are 0 before step ``bias_on``, then ``bias`` · ‖w_i‖ (None: √(2 log d/d), the printed share), and after every
    step max{b(1 + ``bias_growth``), b‖w'‖/‖w‖}. The mask is refreshed every step from ``prune_start`` on.

    A training whose loss is no longer finite is not aborted, since other seeds and cells train beside it; its weights
    become NaN, what is measured of it is NaN, and a claim that asks for it has no verdict.
    """

    steps: int
    batch: int
    rate: float
    temperature: float
    bias_on: int | None
    bias: float | None = 0.2
    bias_growth: float = 0.0
    attention: Attention = "uniform"
    score_scale: float = 1.0
    prune_start: int = 0
    looks: Sequence[int] = field(default=())

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.rate <= 0:
            raise ValueError("rate and temperature must be positive")
        if self.batch < 2:
            raise ValueError("a batch of one has no negatives")
        if self.bias is not None and self.bias < 0:
            raise ValueError("a bilateral ReLU has no negative bias")
        if self.attention not in ("uniform", "softmax"):
            raise ValueError(f"attention must be uniform or softmax, not {self.attention!r}")

    def pairs(self, problem: TokenPairs, cells: Cells, seeds: Seeds, name: str, **options: bool) -> PairStream:
        deviations = torch.tensor(cells.deviation, dtype=torch.float64)
        folded = self.attention == "uniform"
        return PairStream(
            problem, seeds, name, rates=problem.rates(cells.rare), deviations=deviations, folded=folded, **options
        )

    def attended(self, batch: Batch) -> tuple[Tensor, Tensor]:
        first, second = (attend(view, self.attention, self.score_scale) for view in (batch.first, batch.second))
        return first, second

    def train(
        self, problem: TokenPairs, cells: Cells, seeds: Seeds, start: Encoders, *, unpaired: bool = False
    ) -> Iterator[Look]:
        """Yields at the steps of ``looks``, before the update of that step, and at the end."""
        decay = torch.tensor(cells.decay, device=seeds.device, dtype=seeds.dtype)
        if bool((decay * self.rate >= 1).any()) or bool((decay < 0).any()):
            raise ValueError("rate × decay must lie in [0, 1)")
        stream = self.pairs(problem, cells, seeds, "training", unpaired=unpaired)
        keep = (1 - self.rate * decay)[:, None, None]
        straight = torch.tensor(cells.straight, device=seeds.device)[:, None]
        share = printed_bias(problem.features) if self.bias is None else self.bias
        encoders, loss = start, torch.full(start.weights.shape[:2], torch.nan, device=seeds.device)
        for step in range(self.steps):
            if step == self.bias_on:
                norms = torch.linalg.vector_norm(encoders.weights, dim=-1)
                encoders = replace(encoders, biases=torch.maximum(encoders.biases, share * norms))
            mask = cells.masks(encoders.weights) if step >= self.prune_start else None
            if step in self.looks:
                yield Look(step, encoders, loss, mask)
            found = infonce_step(encoders, *self.attended(stream.next(self.batch)), self.temperature, mask)
            gradient = found.gradient
            if mask is not None and any(cells.straight):
                gradient = gradient * torch.where(straight, mask, 1.0).unsqueeze(-1)
            moved, loss = keep * encoders.weights - self.rate * gradient, found.loss
            encoders = self._rebiased(encoders, moved)
        yield Look(self.steps, encoders, loss, cells.masks(encoders.weights))

    def trained(self, problem: TokenPairs, cells: Cells, seeds: Seeds, start: Encoders) -> Encoders:
        """The encoders at the end."""
        *_, last = self.train(problem, cells, seeds, start)
        return last.encoders

    def _rebiased(self, encoders: Encoders, moved: Tensor) -> Encoders:
        before, after = (torch.linalg.vector_norm(w, dim=-1) for w in (encoders.weights, moved))
        grown = torch.maximum(encoders.biases * (1 + self.bias_growth), encoders.biases * after / before)
        return Encoders(moved, grown, encoders.multiplicity)


def random_start(
    problem: TokenPairs, cells: int, seeds: Seeds, *, width: int, scale: float, attention: Attention = "uniform"
) -> Encoders:
    """w_i ~ N(0, ``scale``² I), biases 0; the cells of a seed share their initial weights."""
    weights = scale * seeds.normal("initial weights", 1, width, problem.dim).expand(-1, cells, -1, -1)
    multiplicity = problem.tokens if attention == "uniform" else 1
    return Encoders(weights.contiguous(), torch.zeros_like(weights[..., 0]), multiplicity)


def nan_if_diverged(weights: Tensor) -> Tensor:
    """(..., neurons, dim) → (...): NaN where a weight is not finite, else 0. Counts are made honest by adding it."""
    return torch.where(weights.isfinite().all(-1).all(-1), 0.0, torch.nan)


def aligned(weights: Tensor, features: int) -> Tensor:
    """|cos| with every feature, the first axes of dictionary coordinates: (seeds, cells, neurons, features). NaN for an
    encoder that diverged, so that what is counted from it is NaN too and not a harmless 0."""
    found = alignments(weights, torch.eye(weights.shape[-1], device=weights.device)[:features])
    return found + nan_if_diverged(weights)[..., None, None]
