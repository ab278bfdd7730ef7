"""What the neurons of networks look like, in the source's names.

p odd, k inputs; a neuron is u_1, ..., u_k, w in R^p. The optimum γ*, networks that attain it and the certificates are
in ``assay.methods.modular_margin``, since people use them on networks of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.methods.modular_margin import neuron_norms
from assay.probes.fourier import fourier_probe

ALIVE = 0.1  # of the largest norm: smaller neurons are on their way out and keep noisy spectra


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


def sparsity(U: Tensor, W: Tensor) -> dict[str, Tensor]:
    """How close the neurons of networks U (seeds, k, p, m), W (seeds, m, p) are to single cosines, and how the
    frequencies share the network: (seeds,) each.

    A neuron of norm ‖θ_i‖ contributes to function, margin and penalty by ‖θ_i‖^{k+1}; ``power_weighted`` weights so.
    """
    k, p = U.shape[1:3]
    report = neuron_report(U, W)
    weight = report.norm.pow(k + 1)
    alive = report.norm > ALIVE * report.norm.amax(1, keepdim=True)
    by_frequency = torch.zeros(len(weight), (p - 1) // 2, dtype=weight.dtype, device=weight.device)
    by_frequency.scatter_add_(1, report.frequency - 1, weight)
    counted = torch.zeros_like(by_frequency).scatter_add_(1, report.frequency - 1, alive.to(weight))
    return {
        "power_mean": report.power.mean(1),
        "power_median": report.power.where(alive, torch.nan).nanmedian(1).values,
        "power_by_norm": _weighted_mean(report.power, report.norm),
        "power_weighted": _weighted_mean(report.power, weight),
        "power_low": report.power.quantile(0.05, dim=1),
        "power_low_live": report.power.where(alive, torch.nan).nanquantile(0.05, dim=1),
        "power_high": report.power.quantile(0.95, dim=1),
        "frequencies": (counted > 0).double().mean(1),
        "frequency_ratio": by_frequency.amax(1) / by_frequency.amin(1),
        "phase_residual": _weighted_median(report.phase_residual, weight),
        "shared_frequency": _weighted_mean(report.shared.double(), weight),
        "alive": alive.double().mean(1),
    }


def _weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    return (values.nan_to_num(0) * weight).sum(1) / weight.sum(1)


def _weighted_median(values: Tensor, weight: Tensor) -> Tensor:
    ordered, index = values.sort(1)
    shares = weight.gather(1, index).cumsum(1) / weight.sum(1, keepdim=True)
    return ordered.gather(1, (shares < 0.5).sum(1, keepdim=True)).squeeze(1)
