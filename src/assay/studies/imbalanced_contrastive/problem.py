"""Sparse-coding token pairs with frequent and rare features: two views of a sample share the features and their signs.

Everything is stacked over seeds and *cells*, conditions that share a seed's draws: a cell is a frequency of the rare
features and a noise level. Vectors are written in the coordinates of the dictionary [M, M⊥]: the first ``features``
entries are the features, the rest noise directions. Rotating inputs and weights together changes nothing (a test shows
it), so no training pays for the rotation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from assay.training import Seeds, stream

Mode = Literal["all", "bernoulli", "single"]
MODES: tuple[Mode, ...] = ("all", "bernoulli", "single")


@dataclass(frozen=True)
class TokenPairs:
    """``majority`` frequent features (ε = 1), then ``minority`` rare ones, in ``dim`` dimensions, ``tokens`` per view.

    A feature is active in a sample with probability q = ε · ``base_rate`` (None: log log d/d), with one fair sign for
    all its tokens. ``mode`` says in which tokens of a view it shows: all, each with probability ``share`` (never none),
    or a single one; views choose on their own. Magnitudes are uniform on [``low``, ``high``].
    """

    majority: int = 5
    minority: int = 4
    dim: int = 100
    tokens: int = 4
    base_rate: float | None = 0.3
    mode: Mode = "all"
    share: float = 0.5
    low: float = 0.8
    high: float = 1.2

    def __post_init__(self) -> None:
        d = self.features
        if self.majority < 1 or self.minority < 0:
            raise ValueError("a problem needs at least one frequent feature and no negative number of rare ones")
        if d > self.dim:
            raise ValueError(f"{d} orthonormal features do not fit into {self.dim} dimensions")
        if self.tokens < 1:
            raise ValueError(f"a sample has at least one token, not {self.tokens}")
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if not 0 < self.share <= 1 or not 0 < self.low <= self.high:
            raise ValueError("share must lie in (0, 1], and magnitudes be positive with low ≤ high")
        if self.base_rate is None and d < 3:
            raise ValueError("log log d/d is a probability only for d ≥ 3 features")
        if not 0 < self.rate <= 1:
            raise ValueError(f"a feature cannot be active with probability {self.rate:g}")

    @property
    def features(self) -> int:
        return self.majority + self.minority

    @property
    def rate(self) -> float:
        """p₀, the probability of a feature with ε = 1."""
        return math.log(math.log(self.features)) / self.features if self.base_rate is None else self.base_rate

    @property
    def minority_features(self) -> list[int]:
        return list(range(self.majority, self.features))

    @property
    def mean_active(self) -> float:
        """E|A_j|, the tokens in which an active feature shows."""
        if self.mode == "all":
            return float(self.tokens)
        if self.mode == "single":
            return 1.0
        return self.tokens * self.share / (1 - (1 - self.share) ** self.tokens)

    @property
    def mean_magnitude(self) -> float:
        return (self.low + self.high) / 2

    def rates(self, rare: Sequence[float] | float) -> Tensor:
        """q_j per cell: (cells, features)."""
        values = torch.as_tensor(rare, dtype=torch.float64).reshape(-1, 1)
        if bool((values <= 0).any()):
            raise ValueError("the frequency ε of a rare feature must be positive")
        q = torch.full((len(values), self.features), self.rate, dtype=torch.float64)
        q[:, self.majority :] *= values
        if bool((q > 1).any()):
            raise ValueError(f"ε · p₀ = {float(q.max()):g} is no probability")
        return q

    def deviation(self, nsr: float) -> float:
        """σ of a noise-to-signal ratio NSR = σ²d₁: the ratio, not σ, is kept when the dimension changes."""
        return math.sqrt(nsr / self.dim)

    def dictionary(self, seeds: Seeds) -> Tensor:
        """An orthonormal basis whose first columns are the features, drawn per seed: (seeds, dim, dim)."""
        q, r = torch.linalg.qr(seeds.normal("dictionary", self.dim, self.dim, dtype=torch.float64).double())
        basis: Tensor = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
        return basis.to(seeds.dtype)


def ambient(vectors: Tensor, dictionary: Tensor) -> Tensor:
    """Vectors (seeds, ..., dim) from dictionary coordinates to the space in which the features are not axes."""
    eye = torch.eye(dictionary.shape[-1], dtype=dictionary.dtype, device=dictionary.device)
    if not torch.allclose(dictionary.mT @ dictionary, eye.expand_as(dictionary), atol=1e-4):
        raise ValueError("the columns of a dictionary must be orthonormal")
    shape = vectors.shape
    return (vectors.reshape(shape[0], -1, shape[-1]) @ dictionary.mT).reshape(shape)


@dataclass(frozen=True)
class Batch:
    """Samples of every seed and cell. ``signs`` (seeds, cells, batch, features) in {−1, 0, 1} are shared by the views;
    ``first`` and ``second`` (seeds, cells, batch, tokens, dim) are the views, in dictionary coordinates. A folded batch
    has a single token, the mean of the sample's tokens."""

    signs: Tensor
    first: Tensor
    second: Tensor


class PairStream:
    """Fresh batches from each seed's own streams. Cells see the same uniforms and normals, thresholded and scaled, so
    that comparisons between them are paired and cost few draws.

    ``folded`` gives the mean token only, with its exact law (noise σ/√L), which is all that uniform attention reads.
    ``unpaired`` draws features of the second view on their own: a control in which there is nothing to learn.
    ``nonempty`` gives samples without any feature one feature at random.
    """

    def __init__(
        self,
        problem: TokenPairs,
        seeds: Seeds,
        name: str,
        *,
        rates: Tensor,
        deviations: Tensor,
        folded: bool = True,
        unpaired: bool = False,
        nonempty: bool = False,
    ) -> None:
        if rates.shape != (len(deviations), problem.features):
            raise ValueError("every cell needs its rates (cells, features) and its deviation (cells,)")
        self.problem, self.seeds, self.folded = problem, seeds, folded
        self.unpaired, self.nonempty = unpaired, nonempty
        self.rates = rates.to(seeds.device, torch.float32)
        self.deviations = deviations.to(seeds.device, seeds.dtype)
        parts = ("support", "first view", "second view", "other support")
        self.generators = {part: [stream(seed, f"{name}: {part}") for seed in seeds] for part in parts}

    def next(self, batch: int) -> Batch:
        signs = self._signs("support", batch)
        other = self._signs("other support", batch) if self.unpaired else signs
        return Batch(signs, self._view(signs, "first view"), self._view(other, "second view"))

    def _uniform(self, part: str, *shape: int) -> Tensor:
        drawn = torch.stack([torch.rand(*shape, generator=g) for g in self.generators[part]])
        return drawn.to(self.seeds.device)

    def _signs(self, part: str, batch: int) -> Tensor:
        d = self.problem.features
        drawn = self._uniform(part, 3, batch, d)
        active = drawn[:, None, 0] < self.rates[:, None, :]
        if self.nonempty:
            one = torch.nn.functional.one_hot(drawn[:, 2].argmax(-1), d).bool()
            active = active | (one.unsqueeze(1) & ~active.any(-1, keepdim=True))
        return active * torch.where(drawn[:, None, 1] < 0.5, -1.0, 1.0)

    def _view(self, signs: Tensor, part: str) -> Tensor:
        problem, batch = self.problem, signs.shape[-2]
        size = self._magnitudes(part, batch).unsqueeze(1)  # (seeds, 1, batch, tokens, features)
        tokens = 1 if self.folded else problem.tokens
        noise = torch.stack([torch.randn(batch, tokens, problem.dim, generator=g) for g in self.generators[part]])
        noise = noise.to(self.seeds.device, self.seeds.dtype).unsqueeze(1)
        scale = self.deviations * (problem.tokens**-0.5 if self.folded else 1.0)
        view = noise * scale[:, None, None, None]
        if self.folded:
            size = size.mean(-2, keepdim=True)
        view[..., : problem.features] += signs.unsqueeze(-2) * size
        return view

    def _magnitudes(self, part: str, batch: int) -> Tensor:
        """a_{jℓ} 1[ℓ ∈ A_j]: (seeds, batch, tokens, features)."""
        p = self.problem
        drawn = self._uniform(part, 2, batch, p.tokens, p.features)
        size = (p.low + (p.high - p.low) * drawn[:, 0]).to(self.seeds.dtype)
        if p.mode == "all":
            return size
        token = torch.arange(p.tokens, device=size.device)[:, None]
        pick, rest = drawn[:, 1, :, :1], drawn[:, 1]
        if p.mode == "single":
            return size * (token == (pick * p.tokens).long())
        # The first active token has a truncated geometric law; the later ones are then free. No rejection needed.
        reach = pick * (1 - (1 - p.share) ** p.tokens)
        first = (torch.log1p(-reach) / math.log1p(-p.share)).long() if p.share < 1 else torch.zeros_like(pick).long()
        return size * ((token == first) | ((token > first) & (self._uniform(part, *rest.shape[1:]) < p.share)))
