"""The spectrum of a whole network: f̂ over all of its k inputs and its output."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.methods.modular_margin import network_logits
from assay.probes.fourier import decode_inputs


def diagonal_transform(U: Tensor, W: Tensor) -> Tensor:
    """f̂(j, ..., j, −j) of the whole function for j = 0..p−1, by the (k+1)-dimensional transform: (p,) complex."""
    k, p = U.shape[-3], U.shape[-2]
    table = network_logits(U, W, decode_inputs(torch.arange(p**k), p, k)).reshape((p,) * (k + 1))
    transform: Tensor = torch.fft.fftn(table)
    j = torch.arange(p)
    return transform[(*[j] * k, -j % p)]
