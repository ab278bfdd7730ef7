"""What trained encoders are good for: similarity of positive pairs and linear regression on new samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from assay.training import Seeds

from ..learners import Cells, Contrastive, Encoders
from ..problem import TokenPairs

_CHUNK = 200


@dataclass(frozen=True)
class Readout:
    """Per seed and cell: mean cosine of positive pairs, and the test error of a linear head that predicts Σ_j s_j."""

    cosine: Tensor
    error: Tensor


def read_out(
    problem: TokenPairs,
    cells: Cells,
    seeds: Seeds,
    encoders: Encoders,
    run: Contrastive,
    *,
    train: int,
    test: int,
    balanced: bool = True,
) -> Readout:
    """On samples with at least one feature. ``balanced`` makes all features equally frequent (ε = 1), so that rare ones
    count; otherwise they are as rare as in training."""
    seen = replace(cells, rare=[1.0] * len(cells.rare)) if balanced else cells
    name = "balanced" if balanced else "imbalanced"
    fitted = list(_pairs(problem, seen, seeds, encoders, run, f"{name} probe", train))
    head = _least_squares(torch.cat([h for h, _, _ in fitted], 2), torch.cat([y for _, _, y in fitted], 2))
    cosine = error = torch.zeros((), dtype=torch.float64, device=seeds.device)
    count = 0
    for h, other, y in _pairs(problem, seen, seeds, encoders, run, f"{name} test", test):
        norms = torch.linalg.vector_norm(h, dim=-1) * torch.linalg.vector_norm(other, dim=-1)
        similarity = torch.where(norms == 0, 0, (h * other).sum(-1) / torch.where(norms == 0, 1, norms))
        cosine = cosine + similarity.sum(-1)
        error = error + (_with_one(h) @ head - y.unsqueeze(-1)).square().sum((-1, -2))
        count += h.shape[2]
    return Readout(cosine / count, error / count)


def _pairs(
    problem: TokenPairs, cells: Cells, seeds: Seeds, encoders: Encoders, run: Contrastive, name: str, samples: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Representations of both views and targets, in chunks: (seeds, cells, n, neurons) twice, (seeds, cells, n)."""
    stream = run.pairs(problem, cells, seeds, name, nonempty=True)
    for begin in range(0, samples, _CHUNK):
        batch = stream.next(min(_CHUNK, samples - begin))
        first, second = run.attended(batch)
        yield encoders(first).double(), encoders(second).double(), batch.signs.sum(-1).double()


def _with_one(h: Tensor) -> Tensor:
    return torch.cat([h, torch.ones_like(h[..., :1])], -1)


def _least_squares(h: Tensor, y: Tensor) -> Tensor:
    """A linear head with an intercept; a ridge of 1e-8 of the mean energy keeps silent neurons harmless. Outputs of a
    diverged encoder count as 0 here, so that the other seeds' heads can be solved; its test error is NaN."""
    x = _with_one(torch.where(h.isfinite(), h, 0))
    gram = x.mT @ x
    ridge = 1e-8 * gram.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    eye = torch.eye(gram.shape[-1], device=gram.device)
    head: Tensor = torch.linalg.solve(gram + ridge * eye, x.mT @ y.unsqueeze(-1))
    return head
