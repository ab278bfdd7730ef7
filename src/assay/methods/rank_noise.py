"""How much rank should in-context regression have? The exact error of linear attention at every rank.

One layer of linear attention whose key-query matrix has rank r, pretrained on prompts of N noise-free examples with
token covariance Λ, keeps the r leading directions of Λ. On a prompt of M examples with label noise σ² it errs by what
it does not cover, by what sampled inputs add, and by label noise; the last two grow with the rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, altair
from assay.methods._checks import all_finite, number, whole

from ._arrays import of_tensors

_PARTS = {"bias": "uncovered signal", "sampling": "sampled inputs", "label_noise": "label noise"}


@dataclass(frozen=True, repr=False)
class RankNoise(Report):
    """The error at ranks 0 to d in its three parts, each (d + 1,), and what follows from it.

    ``bias`` is the signal that is not covered or not fully weighted, ``sampling`` what M sampled inputs add,
    ``label_noise`` what σ² adds; ``error`` is their sum. ``tolerated`` (d,) is for each direction the label noise up to
    which one more rank for it lowers the error; negative where none does. ``unique`` (d + 1,) says at which ranks
    pretraining has one answer: where the next eigenvalue is as large as the last one kept, either may be kept, and with
    ``weights`` the error depends on which."""

    eigenvalues: Tensor
    bias: Tensor
    sampling: Tensor
    label_noise: Tensor
    tolerated: Tensor
    unique: Tensor
    noise: float

    @property
    def error(self) -> Tensor:
        """Expected squared error on the query at every rank: (d + 1,)."""
        return self.bias + self.sampling + self.label_noise

    @property
    def best(self) -> int:
        """The rank of least error, the smallest of equals."""
        return int(self.error.argmin())

    def gap(self, small: int, large: int) -> float:
        """What the larger rank costs over the smaller one, negative where it gains."""
        ranks = [whole("a rank", rank, 0, len(self.error) - 1) for rank in (small, large)]
        return float(self.error[ranks[1]] - self.error[ranks[0]])

    def headline(self) -> str:
        """The best rank, and what full rank costs over it."""
        full = len(self.eigenvalues)
        return (
            f"best rank {self.best} of {full} at label noise {self.noise:g}: error {float(self.error[self.best]):.4g}, "
            f"at full rank {float(self.error[-1]):.4g}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per rank."""
        columns = {"error": self.error, **{name: getattr(self, name) for name in _PARTS}}
        return [
            {
                "rank": rank,
                **{name: float(each[rank]) for name, each in columns.items()},
                "unique": bool(self.unique[rank]),
            }
            for rank in range(len(self.error))
        ]

    def figure(self) -> Any:
        """The three parts as a stack over the rank; the dashed line stands at the best."""
        alt = altair("the figure of a report")
        rows = [
            {"rank": row["rank"], "part": shown, "order": at, "value": row[name]}
            for row in self.table()
            for at, (name, shown) in enumerate(_PARTS.items())
        ]
        stack = (
            alt.Chart(alt.Data(values=rows))
            .mark_area()
            .encode(
                x=alt.X("rank:Q", title="rank", axis=alt.Axis(tickMinStep=1)),
                y=alt.Y("value:Q", title="expected squared error", stack="zero"),
                color=alt.Color("part:N", title="error from", sort=list(_PARTS.values())),
                order="order:Q",
            )
        )
        best = alt.Chart(alt.Data(values=[{"rank": self.best}])).mark_rule(strokeDash=[4, 4]).encode(x="rank:Q")
        return stack + best


@of_tensors
def rank_noise(
    covariance: Tensor, *, pretraining: float, examples: int, noise: float, weights: Tensor | None = None
) -> RankNoise:
    """The error of the best attention of every rank.

    ``covariance`` is Λ (d, d), such as ``token_covariance`` estimates, or its eigenvalues (d,) in descending order.
    ``pretraining`` is N, the examples of a prompt in pretraining (``math.inf`` is allowed), ``examples`` is M, those of
    the prompt to be answered, ``noise`` the variance σ² of its labels. ``weights`` (d,) is the task, in the coordinates
    of Λ; left out, the error is the mean over standard normal tasks. One eigendecomposition, then O(d) for all ranks.
    """
    number("pretraining", pretraining, least=1, infinite=True)
    whole("examples", examples, 1)
    number("noise", noise, least=0)
    eigenvalues, basis = spectrum(covariance)
    task = torch.ones_like(eigenvalues)
    if weights is not None:
        if weights.shape != eigenvalues.shape:
            raise ValueError(f"weights need one entry per dimension, {len(eigenvalues)}, not {tuple(weights.shape)}")
        all_finite("weights", weights)
        given = weights.detach().to(eigenvalues)
        task = (given if basis is None else basis.mT @ given).square()
    signal = task * eigenvalues  # w̃ᵢ²λᵢ, the part of ‖w‖²_Λ in each direction
    trace = 0.0 if math.isinf(pretraining) else float(eigenvalues.sum()) / pretraining
    damped = (1 + 1 / pretraining) * eigenvalues + trace
    gain = torch.where(eigenvalues > 0, eigenvalues / damped.clamp_min(torch.finfo(damped.dtype).tiny), 0.0)  # κᵢ
    squares, total = gain.square(), signal.sum()
    added = (signal * squares + total * squares) / examples
    saved = signal * (1 - (gain - 1).square())
    # Direction i lowers the error while (κᵢ²/M)(w̃ᵢ²λᵢ + ‖w‖² + σ²) < w̃ᵢ²λᵢ(1 − (κᵢ − 1)²).
    tolerated = torch.where(squares > 0, saved * examples / squares.clamp_min(1e-300) - signal - total, -torch.inf)
    end = torch.ones(1, dtype=torch.bool)
    unique = torch.cat([end, (eigenvalues[1:] < eigenvalues[:-1]) | (eigenvalues[:-1] == 0), end])
    return RankNoise(
        eigenvalues,
        total - _summed(saved),
        _summed(added),
        _summed(noise * squares / examples),
        tolerated,
        unique,
        float(noise),
    )


@of_tensors
def token_covariance(features: Tensor, *, centred: bool = True) -> Tensor:
    """The covariance (d, d) in float64 of features (..., d), such as a layer's hidden states; all axes but the last are
    samples. ``centred=False`` is the second moment, which is what the model of zero mean has."""
    if features.ndim < 2 or features.shape[:-1].numel() < 2:
        raise ValueError(f"features are samples (..., dimensions), at least two of them, not {tuple(features.shape)}")
    all_finite("features", features)
    rows = features.detach().double().flatten(0, -2)
    rows = rows - rows.mean(0) if centred else rows
    return rows.mT @ rows / (len(rows) - bool(centred))


def spectrum(covariance: Tensor) -> tuple[Tensor, Tensor | None]:
    """Eigenvalues (d,) in descending order and eigenvectors (d, d) as columns, None where eigenvalues were given. What
    is not a covariance is refused."""
    all_finite("covariance", covariance)
    given = covariance.detach().double().cpu()
    if given.ndim == 1 and len(given):
        if bool((given < 0).any()) or bool((given[1:] > given[:-1]).any()):
            raise ValueError("eigenvalues must not be negative and must descend: sort them, and the weights with them")
        return given, None
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not len(given):
        raise ValueError(f"covariance is a matrix (d, d) or its eigenvalues (d,), not {tuple(given.shape)}")
    scale = float(given.abs().max())
    if float((given - given.mT).abs().max()) > 1e-6 * scale:
        raise ValueError("covariance must be symmetric")
    values, vectors = torch.linalg.eigh((given + given.mT) / 2)
    if float(values.min()) < -1e-6 * scale:
        raise ValueError(
            f"covariance must not have negative eigenvalues, and its smallest is {float(values.min()):.3g}"
        )
    return values.flip(0).clamp_min(0), vectors.flip(1)


def _summed(parts: Tensor) -> Tensor:
    """Sums over the first 0, 1, ..., d directions."""
    return torch.cat([parts.new_zeros(1), parts.cumsum(0)])
