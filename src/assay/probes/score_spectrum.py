"""Two-dimensional spectra of score tables: how much would token a, as a query, attend to token b of a cycle?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, chart
from assay.methods._arrays import of_tensors
from assay.methods._checks import whole


@dataclass(frozen=True, repr=False)
class ScoreSpectrum(Report):
    """Folded two-dimensional spectra of score tables (..., p, p), double-centred.

    ``power`` (..., p//2, p//2) has key frequencies first and query frequencies second, both from 1. ``scores`` is the
    centred table. ``flat`` is the share of one mode in a flat spectrum; an untrained head of small rank lies above
    it, so compare with the same model at initialisation.
    """

    scores: Tensor
    power: Tensor

    @property
    def flat(self) -> float:
        return 1 / (self.power.shape[-1] * self.power.shape[-2])

    def share(self, modes: int = 1) -> Tensor:
        """The part of the power in the strongest ``modes`` modes: (...)."""
        whole("modes", modes, 1, self.power.shape[-1] ** 2)
        every = self.power.flatten(-2)
        return every.topk(modes, dim=-1).values.sum(-1) / every.sum(-1)

    def above_flat(self, modes: int = 1) -> Tensor:
        return self.share(modes) / (modes * self.flat)

    def peak(self) -> tuple[Tensor, Tensor]:
        """The frequencies (key, query) of the strongest mode."""
        best = self.power.flatten(-2).argmax(-1)
        width = self.power.shape[-1]
        return best // width + 1, best % width + 1

    def headline(self) -> str:
        return (
            f"the strongest mode has {float(self.share().mean()):.1%} of the power, in a flat spectrum {self.flat:.1%}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per table: the share of its strongest mode, and which that is."""
        shares, (keys, queries) = self.share().flatten().tolist(), self.peak()
        rows = zip(shares, keys.flatten().tolist(), queries.flatten().tolist(), strict=True)
        return [{"table": place, "share": a, "key": b, "query": c} for place, (a, b, c) in enumerate(rows)]

    def figure(self) -> Any:
        """The power by the frequency of key and query, averaged over tables."""
        mean = self.power.reshape(-1, *self.power.shape[-2:]).mean(0)
        cells = [
            {"key": j + 1, "query": l + 1, "share": float(mean[j, l] / mean.sum())}
            for j in range(len(mean))
            for l in range(len(mean))
        ]
        drawn = chart(cells).mark_rect().encode(x="query:O", y="key:O", color="share:Q")
        return drawn.properties(width=240, height=240)


@of_tensors
def score_spectrum(scores: Tensor) -> ScoreSpectrum:
    """Centre tables (..., p, p) along both axes, transform, and add up the modes (±j, ±l)."""
    p = scores.shape[-1]
    if scores.ndim < 2 or scores.shape[-2] != p or p < 3:
        raise ValueError(f"scores are tables (..., p, p) of at least 3 tokens, not {tuple(scores.shape)}")
    values = scores.detach().to(torch.promote_types(scores.dtype, torch.float32))
    values = values - values.mean(-1, keepdim=True)
    values = values - values.mean(-2, keepdim=True)
    every = torch.fft.fft2(values).abs().square()[..., 1:, 1:]
    half = p // 2
    power = (every + every.flip(-1))[..., :half]
    power = (power + power.flip(-2))[..., :half, :]
    if p % 2 == 0:  # the frequency p/2 is its own mirror image
        power[..., -1, :] /= 2
        power[..., :, -1] /= 2
    return ScoreSpectrum(values, power)


@of_tensors
def token_scores(embeddings: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """E W^K W^{Qᵀ} Eᵀ (..., p, p), keys along the rows, from what a head reads off the tokens (..., p, dim) and its
    weights (..., head_dim, dim), as in ``nn.Linear``."""
    return (embeddings @ key.mT) @ (embeddings @ query.mT).mT
