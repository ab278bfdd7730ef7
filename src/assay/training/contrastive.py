"""Contrastive losses on the embeddings of two views.

Embeddings are (..., batch, dim); row k of the second view is the positive of row k of the first. Leading axes, such as
one for seeds, are kept: the losses come back as (...).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.functional import normalize as unit
from torch.nn.functional import softplus

from assay.methods._checks import number

HALF = (torch.float16, torch.bfloat16)


def check_pairs(first: Tensor, second: Tensor) -> None:
    """Refuse embeddings that are no pairs, or that have no negatives."""
    if first.ndim < 2 or first.shape != second.shape:
        raise ValueError(
            "embeddings of both views must be (..., batch, dim) and of equal shape, "
            f"not {tuple(first.shape)} and {tuple(second.shape)}"
        )
    if first.shape[-2] < 2:
        raise ValueError("a batch of one has no negatives: give at least two pairs")


@contextmanager
def in_full_precision(*embeddings: Tensor, normalize: bool) -> Iterator[tuple[Tensor, ...]]:
    """The embeddings in single precision or better, of length one where asked for, with autocast off inside: half
    precision is for the encoder, and similarities over a small temperature need more digits."""
    with torch.autocast(embeddings[0].device.type, enabled=False):
        exact = (each.float() if each.dtype in HALF else each for each in embeddings)
        yield tuple(unit(each, dim=-1) if normalize else each for each in exact)


def info_nce(
    first: Tensor,
    second: Tensor,
    *,
    temperature: float = 0.2,
    normalize: bool = True,
    symmetric: bool = True,
    negatives: Tensor | None = None,
) -> Tensor:
    """−log softmax of the positive among the candidates, in the mean over the batch. Candidates are the rows of the
    other view, or with ``negatives`` (..., count, dim) the positive and these. ``symmetric`` averages both directions.
    """
    number("temperature", temperature, above=0)
    if negatives is not None:
        return _against(first, second, negatives, temperature, normalize)
    check_pairs(first, second)
    with in_full_precision(first, second, normalize=normalize) as (x, y):
        logits = x @ y.mT / temperature
        positives = logits.diagonal(dim1=-2, dim2=-1)
        losses = logits.logsumexp(-1) - positives
        if symmetric:
            losses = (losses + logits.logsumexp(-2) - positives) / 2
        return losses.mean(-1)


def _against(first: Tensor, second: Tensor, negatives: Tensor, temperature: float, normalize: bool) -> Tensor:
    with in_full_precision(first, second, negatives, normalize=normalize) as (x, y, others):
        positives = (x * y).sum(-1, keepdim=True)
        logits = torch.cat([positives, x @ others.mT], dim=-1) / temperature
        return (logits.logsumexp(-1) - logits[..., 0]).mean(-1)


def nt_xent(first: Tensor, second: Tensor, *, temperature: float = 0.5, normalize: bool = True) -> Tensor:
    """SimCLR's loss: each of the 2·batch rows is told apart from all others but itself, its own view the positive."""
    number("temperature", temperature, above=0)
    check_pairs(first, second)
    with in_full_precision(first, second, normalize=normalize) as (x, y):
        rows = torch.cat([x, y], dim=-2)
        logits = rows @ rows.mT / temperature
        itself = torch.eye(rows.shape[-2], dtype=torch.bool, device=rows.device)
        positives = (x * y).sum(-1) / temperature
        losses = logits.masked_fill(itself, -torch.inf).logsumexp(-1)
        return losses.mean(-1) - positives.mean(-1)


def logistic_contrast(
    first: Tensor,
    second: Tensor,
    *,
    temperature: float = 1.0,
    normalize: bool = True,
    negatives: Tensor | None = None,
) -> Tensor:
    """log(1 + e^−φ(x)ᵀ(φ(x⁺) − φ(x⁻))/temperature) in the mean over all triples: the loss with a single negative that
    the theory of contrastive features is about. The negatives of a row are the other rows of the second view, or
    ``negatives`` (..., count, dim)."""
    number("temperature", temperature, above=0)
    if negatives is not None:
        with in_full_precision(first, second, negatives, normalize=normalize) as (x, y, others):
            margins = (x * y).sum(-1, keepdim=True) - x @ others.mT
            return softplus(-margins / temperature).mean((-2, -1))
    check_pairs(first, second)
    with in_full_precision(first, second, normalize=normalize) as (x, y):
        similar = x @ y.mT
        losses = softplus((similar - similar.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)) / temperature)
        count = x.shape[-2]
        others = losses.sum((-2, -1)) - losses.diagonal(dim1=-2, dim2=-1).sum(-1)
        return others / (count * (count - 1))
