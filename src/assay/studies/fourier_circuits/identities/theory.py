"""Closed forms of the source that are checked against each other and by enumeration; p odd, k inputs."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from assay.methods.modular_margin import check_modulus, network_logits
from assay.probes.fourier import decode_inputs


def cosine_sum(p: int) -> Tensor:
    """Σ_ζ cos(2πζs/p) over ζ = 1..(p−1)/2 for s = 0..p−1: (p−1)/2 at s = 0 and −1/2 elsewhere, printed as 0."""
    check_modulus(p, 2)
    angles = torch.outer(torch.arange(1, (p + 1) // 2), torch.arange(p)) % p
    return torch.cos(2 * math.pi / p * angles.double()).sum(0)


def polarisation(d: Tensor) -> Tensor:
    """Σ_s (−1)^{(k−Σs)/2} (Σ_l s_l d_l)^k over signs s (Lemma C.16) for d (..., k): 2^k k! Π_l d_l."""
    k = d.shape[-1]
    signs = torch.tensor(list(itertools.product((1.0, -1.0), repeat=k)), dtype=d.dtype)
    return ((d @ signs.T).pow(k) * signs.prod(1)).sum(-1)


def sum_to_product(x: Tensor, c: Tensor) -> Tensor:
    """cos(Σ_l x_l − c) expanded into 2^k products of cos and sin of the inputs (..., k): (...).

    With r sines, the output's factor is (−1)^{r/2} cos c for even r and (−1)^{(r−1)/2} sin c for odd r.
    """
    total = torch.zeros_like(c)
    for sines in itertools.product((False, True), repeat=x.shape[-1]):
        product = torch.where(torch.tensor(sines), x.sin(), x.cos()).prod(-1)
        r = sum(sines)
        total = total + (-1) ** (r // 2) * product * (c.cos() if r % 2 == 0 else c.sin())
    return total


def brute_force_expected_margin(U: Tensor, W: Tensor) -> Tensor:
    """E_{q*}[g'] over all p^k inputs, q* uniform: f[y] minus the mean of the wrong logits: (...)."""
    k, p = U.shape[-3], U.shape[-2]
    inputs = decode_inputs(torch.arange(p**k), p, k)
    logits = network_logits(U, W, inputs)
    right = logits.gather(-1, (inputs.sum(-1, keepdim=True) % p).expand(*logits.shape[:-1], 1)).squeeze(-1)
    return (right - (logits.sum(-1) - right) / (p - 1)).mean(-1)
