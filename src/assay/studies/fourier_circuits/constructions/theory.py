"""Fewer neurons than the source's, and the spectrum of a whole network: f̂ over all of its k inputs and its output."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import torch
from torch import Tensor

from assay.methods.modular_margin import build_max_margin, check_modulus, cosine_neurons, network_logits
from assay.probes.fourier import decode_inputs

Construction = Literal["polarisation", "thirds", "circle"]
CONSTRUCTIONS: tuple[Construction, ...] = ("polarisation", "thirds", "circle")


def isolates(multipliers: tuple[int, ...], count: int) -> bool:
    """Whether neurons with phases θ_l = 2πg_l t/count, t = 0..count−1, compute cos(Σa − c) and nothing else.

    (Σ_l cos(x_l + θ_l))^k cos(z + Σθ_l) has the waves n of the inputs with Σ|n_l| at most k and of its parity, each
    times exp(i Σ_l (n_l − 1)θ_l). The sum over t leaves those where count divides Σ_l (n_l − 1)g_l: it must be the
    wanted n = (1, ..., 1) alone.
    """
    k = len(multipliers)
    for wave in itertools.product(range(-k, k + 1), repeat=k):
        size = sum(map(abs, wave))
        if size > k or (k - size) % 2 or wave == (1,) * k:
            continue
        if sum((n - 1) * g for n, g in zip(wave, multipliers, strict=True)) % count == 0:
            return False
    return True


def circle(k: int) -> tuple[tuple[int, ...], int]:
    """Multipliers and number of neurons per frequency of a circle that isolates (checked for k = 2 to 6): 2·3^{k−1}
    neurons with g = (1, 3, ..., 3^{k−2}, 4·3^{k−2}). At k = 2 and 3 no smaller circle does."""
    return (*(3**l for l in range(k - 1)), 4 * 3 ** (k - 2)), 2 * 3 ** (k - 1)


def circle_phases(multipliers: tuple[int, ...], count: int) -> Tensor:
    """θ_l = 2πg_l t/count for t = 0..count−1: (count, k)."""
    turns = torch.outer(torch.arange(count), torch.tensor(multipliers)) % count
    return 2 * math.pi / count * turns.double()


def network_of(p: int, phases: Tensor, offsets: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A network (U, W) of norm 1 with neurons of these phases (count, k) at every frequency, as ``build_max_margin``
    makes one; ``offsets`` ((p−1)/2, k) turns the phases of each frequency's inputs."""
    (count, k), half = phases.shape, (p - 1) // 2
    check_modulus(p, k)
    each = phases.repeat(half, 1)
    if offsets is not None:
        each = each + offsets.double().repeat_interleave(count, 0)
    inputs, outputs = cosine_neurons(p, torch.arange(1, half + 1).repeat_interleave(count), each)
    scale = (half * count) ** (-1 / (k + 1))
    return scale * inputs, scale * outputs


def construct(p: int, k: int, construction: Construction, *, offsets: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A network of norm 1 and margin γ*: the source's ``polarisation``, ``thirds``, or the ``circle`` of fewest."""
    if construction == "circle":
        return network_of(p, circle_phases(*circle(k)), offsets)
    return build_max_margin(p, k, construction, offsets=offsets)


def diagonal_transform(U: Tensor, W: Tensor) -> Tensor:
    """f̂(j, ..., j, −j) of the whole function for j = 0..p−1, by the (k+1)-dimensional transform: (p,) complex."""
    k, p = U.shape[-3], U.shape[-2]
    table = network_logits(U, W, decode_inputs(torch.arange(p**k), p, k)).reshape((p,) * (k + 1))
    transform: Tensor = torch.fft.fftn(table)
    j = torch.arange(p)
    return transform[(*[j] * k, -j % p)]
