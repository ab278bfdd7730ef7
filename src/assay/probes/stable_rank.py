"""How many directions do features use? The stable rank, ‖F‖_F² / ‖F‖₂², of a whole set, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay._reports import Report, altair
from assay.methods._checks import all_finite, one_of
from assay.methods._features import Side, as_matrix, layer_features

Chunks = Tensor | np.ndarray | Iterable[Tensor | np.ndarray]


@dataclass(frozen=True, repr=False)
class RankReport(Report):
    """``stable`` is ‖F‖_F²/‖F‖₂² and ``centred`` the same without the features' mean, which often is the one large
    direction. ``scaled`` is ‖F‖_F²/‖F‖₂, a formula found in print that grows with the scale of the features and is no
    rank. ``ratio`` is ‖F‖_*/‖F‖_F, between 1 and the root of the rank. ``spectrum`` and ``centred_spectrum`` are the
    singular values, largest first."""

    rows: int
    dim: int
    stable: float
    centred: float
    scaled: float
    ratio: float
    spectrum: tuple[float, ...]
    centred_spectrum: tuple[float, ...]

    def table(self) -> list[dict[str, Any]]:
        """A row per singular value, as it is and with the mean taken away."""
        both = zip(self.spectrum, self.centred_spectrum, strict=True)
        return [{"place": i, "value": one, "centred": other} for i, (one, other) in enumerate(both, 1)]

    def __repr__(self) -> str:
        return (
            f"stable rank {self.stable:.3f} of {self.rows} × {self.dim} features (centred {self.centred:.3f}); "
            f"‖F‖_*/‖F‖_F {self.ratio:.3f}, largest singular value {self.spectrum[0]:.4g}"
        )

    def figure(self) -> Any:
        """The singular values, relative to the largest, on a logarithmic scale."""
        alt = altair("the figure of a spectrum")
        values = [
            {"place": row["place"], "share": row[name] / self.spectrum[0], "features": shown}
            for row in self.table()
            for name, shown in (("value", "as they are"), ("centred", "without their mean"))
            if row[name] > 1e-6 * self.spectrum[0]
        ]
        chart = alt.Chart(alt.Data(values=values)).mark_line(point=len(self.spectrum) <= 64)
        height = alt.Y("share:Q", title="singular value / largest", scale=alt.Scale(type="log"))
        shown = chart.encode(x=alt.X("place:Q", title="place"), y=height, color=alt.Color("features:N"))
        return shown.properties(width=420, height=240)


def stable_rank(features: Chunks, center: bool = False, *, stacked: bool = False) -> Tensor:
    """‖F‖_F²/‖F‖₂² of features (rows, dim), or of chunks of rows; 0 where all are zero. It lies between 1 and the rank
    and no rescaling moves it. ``center`` subtracts the mean of all rows. With ``stacked`` (..., rows, dim) is many
    matrices and gives (...)."""
    if stacked:
        matrix = torch.as_tensor(features).double()
        all_finite("features", matrix)
        size = matrix.square().sum((-2, -1))
        matrix = matrix - matrix.mean(-2, keepdim=True) if center else matrix
        gram = matrix @ matrix.mT if matrix.shape[-2] <= matrix.shape[-1] else matrix.mT @ matrix
        return _stable(_eigenvalues(gram, size))
    return _stable(_Gram.of(features).eigenvalues(center))


def rank_report(
    features: Any, *, model: nn.Module | None = None, layer: str | None = None, at: Side = "input"
) -> RankReport:
    """Stable ranks and spectrum of features, whole or in chunks. With a ``model``, ``features`` are its inputs instead
    (a tensor, a dict, a DataLoader) and those that reach ``layer`` are measured, by default its classification head."""
    one_of("at", at, ("input", "output"))
    gram = _Gram.of(layer_features(model, layer, features, at) if model is not None else features)
    plain, centred = (gram.eigenvalues(center) for center in (False, True))
    values = plain.sqrt()
    largest = float(values[0])
    return RankReport(
        rows=gram.rows,
        dim=len(gram.total),
        stable=float(_stable(plain)),
        centred=float(_stable(centred)),
        scaled=float(plain.sum()) / largest if largest else 0.0,
        ratio=float(values.sum() / plain.sum().sqrt()) if largest else 0.0,
        spectrum=tuple(values.tolist()),
        centred_spectrum=tuple(centred.sqrt().tolist()),
    )


class _Gram:
    """Σ x xᵀ and Σ x over rows, in float64: the rows themselves are not kept."""

    def __init__(self, dim: int, device: torch.device) -> None:
        self.rows = 0
        self.total = torch.zeros(dim, dtype=torch.float64, device=device)
        self.products = torch.zeros(dim, dim, dtype=torch.float64, device=device)

    @classmethod
    def of(cls, features: Chunks) -> _Gram:
        chunks = [features] if isinstance(features, (Tensor, np.ndarray)) else features
        made: _Gram | None = None
        for chunk in chunks:
            rows = as_matrix(torch.as_tensor(chunk).detach())
            all_finite("features", rows)
            made = made or cls(rows.shape[1], rows.device)
            if rows.shape[1] != len(made.total):
                raise ValueError(f"all chunks must have {len(made.total)} columns, not {rows.shape[1]}")
            made.rows += len(rows)
            for start in range(0, len(rows), 4096):
                part = rows[start : start + 4096].double()
                made.total += part.sum(0)
                made.products += part.T @ part
        if made is None:
            raise ValueError("no features were given")
        return made

    def eigenvalues(self, center: bool) -> Tensor:
        mean = torch.outer(self.total, self.total) / self.rows if center else 0.0
        return _eigenvalues(self.products - mean, self.products.trace())


def _eigenvalues(gram: Tensor, size: Tensor) -> Tensor:
    """Largest first; those that are rounding errors of features with the squared norm ``size`` are zero."""
    values: Tensor = torch.linalg.eigvalsh(gram).flip(-1)
    return torch.where(values > 1e-13 * size.unsqueeze(-1), values, 0)


def _stable(eigenvalues: Tensor) -> Tensor:
    largest = eigenvalues[..., 0]
    return torch.where(largest > 0, eigenvalues.sum(-1) / largest.clamp(min=torch.finfo(largest.dtype).tiny), 0.0)
