"""What the mathematics says about maximum-margin networks on modular addition, in the source's names.

p odd, k inputs, ρ = e^{2πi/p}; a neuron is u_1, ..., u_k, w in R^p. The optimum γ*, networks that attain it and the
certificates are in ``assay.methods.modular_margin``, since people use them on networks of their own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from assay.methods.modular_margin import (
    build_max_margin,
    check_modulus,
    expected_margin,
    margin_certificate,
    margin_formula,
    max_margin,
    network_logits,
    neuron_norms,
    required_width,
)
from assay.probes.fourier import decode_inputs, fourier_probe

__all__ = [
    "NeuronReport",
    "ascend",
    "brute_force_expected_margin",
    "build_max_margin",
    "check_modulus",
    "cosine_sum",
    "diagonal_transform",
    "expected_margin",
    "margin_certificate",
    "margin_formula",
    "max_margin",
    "network_logits",
    "neuron_report",
    "polarisation",
    "regularised_gap",
    "regularised_optimum",
    "required_width",
    "sum_to_product",
    "trigonometric_interpolation",
    "vanishing_penalty",
]


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


def diagonal_transform(U: Tensor, W: Tensor) -> Tensor:
    """f̂(j, ..., j, −j) of the whole function for j = 0..p−1, by the (k+1)-dimensional transform: (p,) complex."""
    k, p = U.shape[-3], U.shape[-2]
    table = network_logits(U, W, decode_inputs(torch.arange(p**k), p, k)).reshape((p,) * (k + 1))
    transform = torch.fft.fftn(table)
    j = torch.arange(p)
    return transform[(*[j] * k, -j % p)]


def ascend(U: Tensor, W: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Block-coordinate ascent on J of single neurons (Lemma 4.10): each of the k+1 vectors in turn becomes the
    direction of its gradient at length 1/√(k+1). U (k, p, starts), W (starts, p); the columns do not interact."""
    k = U.shape[0]
    length = 1 / math.sqrt(k + 1)

    def unit(vector: Tensor) -> Tensor:
        return length * vector / vector.norm(dim=0)

    blocks = [unit(u) for u in (*U, W.mT)]
    for _ in range(steps):
        for turn in range(k + 1):
            # J is linear in each block; its gradient is the transform of the product of the others.
            spectra = [torch.fft.fft(block, dim=0) for block in blocks]
            others = torch.stack([s for i, s in enumerate(spectra[:k]) if i != turn]).prod(0)
            product = others if turn == k else others.conj() * spectra[k]
            product[0] = 0
            blocks[turn] = unit(torch.fft.ifft(product, dim=0).real)
    return torch.stack(blocks[:k]), blocks[k].mT


@dataclass(frozen=True)
class NeuronReport:
    """What the neurons of networks look like (..., m).

    ``power`` is the share of the strongest frequency, averaged over the k input vectors; ``frequency`` that of their
    summed power; ``shared`` whether all k+1 vectors peak there; ``phase_residual`` |Σθ_l − θ_w| mod 2π at it;
    ``amplitude_spread`` the largest minus the smallest length among the k+1 vectors, over their mean.
    """

    norm: Tensor
    power: Tensor
    frequency: Tensor
    shared: Tensor
    phase_residual: Tensor
    amplitude_spread: Tensor


def neuron_report(U: Tensor, W: Tensor) -> NeuronReport:
    """The spectra of neurons U (..., k, p, m), W (..., m, p), folded and without the constant."""
    vectors = torch.cat([U, W.mT.unsqueeze(-3)], -3).double()  # (..., k+1, p, m)
    found = fourier_probe(vectors, axis=-2)  # (..., k+1, m)
    frequency = found.power[..., :-1, :, :].sum(-3).argmax(-1) + 1
    index = frequency.unsqueeze(-2).unsqueeze(-2).expand(*vectors.shape[:-2], 1, vectors.shape[-1])
    phases = torch.fft.fft(vectors, dim=-2).gather(-2, index).angle().squeeze(-2)
    residual = phases[..., :-1, :].sum(-2) - phases[..., -1, :]
    residual = (residual + math.pi) % (2 * math.pi) - math.pi
    return NeuronReport(
        norm=neuron_norms(U, W).double(),
        power=found.share[..., :-1, :].mean(-2),
        frequency=frequency,
        shared=(found.peak == frequency.unsqueeze(-2)).all(-2),
        phase_residual=residual.abs(),
        amplitude_spread=(found.norm.amax(-2) - found.norm.amin(-2)) / found.norm.mean(-2),
    )


def trigonometric_interpolation(u: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The trigonometric polynomial through u(0), ..., u(p−1), p odd, at real points."""
    p = len(u)
    transform = np.fft.fft(u)
    j = np.arange(1, (p + 1) // 2)
    waves = np.exp(2j * np.pi / p * np.outer(points, j)) @ transform[1 : (p + 1) // 2]
    return (transform[0].real + 2 * waves.real) / p


def vanishing_penalty(p: int, k: int) -> float:
    """γ*(p−1)/p: from this λ on the zero network minimises mean cross-entropy on D_p plus λΣ_i‖θ_i‖^{k+1}."""
    return max_margin(p, k) * (p - 1) / p


def regularised_gap(p: int, k: int, penalty: float) -> float:
    """The margin of the global minimiser of mean cross-entropy on all of D_p plus λΣ_i‖θ_i‖^{k+1}, at any width from
    ``required_width`` on: log((1 + (1 − t)(p − 1))/t) with t = λ/``vanishing_penalty``, and 0 from t = 1 on.

    Averaging over translations a → a + s, c → c + Σs and reflection raises neither the loss, convex in f, nor the
    penalty, and leaves f = Σ_ζ v_ζ cos_ζ(Σa − c). By J ≤ γ*‖θ‖^{k+1} that costs t Σ_ζ v_ζ at least, and the
    construction does it for that: a convex problem, stationary where all v_ζ are equal. So the normalised margin is γ*
    at every such λ; Lemma 4.7 asks for λ → 0.
    """
    share = penalty / vanishing_penalty(p, k)
    return math.log((1 + (1 - share) * (p - 1)) / share) if share < 1 else 0.0


def regularised_optimum(p: int, k: int, penalty: float) -> float:
    """The value of that global minimum."""
    gap = regularised_gap(p, k, penalty)
    return math.log1p((p - 1) * math.exp(-gap)) + penalty * gap / max_margin(p, k)
