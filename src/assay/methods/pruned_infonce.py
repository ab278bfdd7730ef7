"""InfoNCE whose softmax comes from a masked encoder and whose gradient from the full one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.contrastive import in_full_precision

from ._arrays import of_tensors
from ._checks import number


@dataclass(frozen=True)
class PrunedLoss:
    """``surrogate`` is what to differentiate; ``loss`` is the InfoNCE value of the masked similarities, a number to
    watch. They differ: the surrogate's value means nothing, its gradient is the update."""

    surrogate: Tensor
    loss: Tensor


@of_tensors
def pruned_infonce(
    f_full_x: Tensor,
    f_full_y: Tensor,
    f_mask_x: Tensor,
    f_mask_y: Tensor,
    *,
    tau: float = 0.2,
    normalize: bool = True,
    symmetric: bool = True,
    stop_gradient: bool = True,
) -> PrunedLoss:
    """InfoNCE whose softmax is that of the masked embeddings and whose gradient is that of the full ones.

    Embeddings are (batch, dim); row k of y is the positive of row k of x, the other rows its negatives. The surrogate:
    (1/Kτ) Σ_k [Σ_s P_k(s)⟨f(x_k), f(y_s)⟩ − ⟨f(x_k), f(y_k)⟩] with the masked softmax P held fixed. Where masked and
    full embeddings coincide its gradient is InfoNCE's with ``stop_gradient=False``. ``stop_gradient``, the default,
    treats the candidates y as constants: each pair then pulls on its anchor alone, and the gradient is about half as
    long as InfoNCE's. Compare with a baseline of the same options (``ForwardMagnitudePruner.baseline``).
    """
    number("the temperature tau", tau, above=0)
    shapes = {tuple(f.shape) for f in (f_full_x, f_full_y)}, {tuple(f.shape) for f in (f_mask_x, f_mask_y)}
    if f_full_x.ndim != 2 or any(len(s) != 1 for s in shapes) or f_mask_x.shape[0] != f_full_x.shape[0]:
        raise ValueError("embeddings of both views must be (batch, dim) and of equal shape")
    if len(f_full_x) < 2:
        raise ValueError("a batch of one has no negatives: give at least two pairs")
    every = (f_full_x, f_full_y, f_mask_x, f_mask_y)
    with in_full_precision(*every, normalize=normalize) as (full_x, full_y, mask_x, mask_y):
        first = _one_way(full_x, full_y, mask_x, mask_y, tau, stop_gradient)
        if not symmetric:
            return first
        second = _one_way(full_y, full_x, mask_y, mask_x, tau, stop_gradient)
        return PrunedLoss((first.surrogate + second.surrogate) / 2, (first.loss + second.loss) / 2)


def _one_way(full_x: Tensor, full_y: Tensor, mask_x: Tensor, mask_y: Tensor, tau: float, stop: bool) -> PrunedLoss:
    with torch.no_grad():
        logits = mask_x @ mask_y.mT / tau
        residual = logits.softmax(1)
        residual.diagonal().sub_(1)
        loss = (logits.logsumexp(1) - logits.diagonal()).mean()
    candidates = full_y.detach() if stop else full_y
    return PrunedLoss((residual * (full_x @ candidates.mT)).sum() / (tau * len(full_x)), loss)
