"""What is measured of trained networks and transformers: numbers per seed, by name."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.probes.attention_fourier import score_spectrum
from assay.training.seeds import Seeds

from . import theory
from .learners import Look, Network
from .problem import ModularAddition
from .transformer import Transformer, Weights

ALIVE = 0.1  # of the largest norm: smaller neurons are on their way out and keep noisy spectra


def sparsity(network: Network) -> dict[str, Tensor]:
    """How close the neurons are to single cosines, and how the frequencies share the network: (seeds,) each.

    A neuron of norm ‖θ_i‖ contributes to function, margin and penalty by ‖θ_i‖^{k+1}; ``power_weighted`` weights so.
    """
    k, p = network.U.shape[1:3]
    report = theory.neuron_report(network.U, network.W)
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


def margin_ratios(network: Network, seen: Look) -> dict[str, Tensor]:
    """Smallest and mean margin of a look, and J, over γ*‖θ‖^{k+1}: (seeds,) each."""
    k, p = network.U.shape[1:3]
    exact = network.detached(torch.float64)
    bound = theory.max_margin(p, k) * exact.squares.pow((k + 1) / 2).sum(1)
    return {
        "margin_ratio": seen.least_margin / bound,
        "mean_margin_ratio": seen.mean_margin / bound,
        "alignment_ratio": theory.expected_margin(exact.U, exact.W) / bound,
    }


def attention_shares(
    model: Transformer, problem: ModularAddition, start: Weights, trained: Weights, seeds: Seeds
) -> dict[str, Tensor]:
    """Medians over the heads of the share of the strongest modes, trained and at the start: (seeds,) each.

    ``embedding``: the trained embeddings under the key-query weights of the start. ``shuffled``: the trained heads
    with the tokens in a random order, where no cycle is left to see.
    """
    p = problem.p
    tables = {
        "trained": model.head_tables(trained, p),
        "untrained": model.head_tables(start, p),
        "embedding": model.head_tables(start, p, reads=model.token_inputs(trained, p)),
    }
    order = seeds.permutation("token order", p)
    rows = tables["trained"].gather(2, order[:, None, :, None].expand_as(tables["trained"]))
    tables["shuffled"] = rows.gather(3, order[:, None, None, :].expand_as(rows))
    found = {}
    for name, table in tables.items():
        spectrum = score_spectrum(table.double())
        most = spectrum.power[0, 0].numel()  # p = 3 has a single mode
        found |= {f"top{modes}_{name}": spectrum.share(min(modes, most)).median(1).values for modes in (1, 2)}
    return found


def mirrored(problem: ModularAddition, train: Tensor, validation: Tensor) -> Tensor:
    """Which validation pairs (a, b) have (b, a) in training: (seeds, n), for k = 2."""
    if problem.k != 2:
        raise ValueError("a mirror image is that of a pair")
    known = torch.zeros(len(train), problem.size, dtype=torch.bool, device=train.device).scatter_(1, train, True)
    return known.gather(1, problem.flat(problem.inputs(validation).flip(-1)))


def share_correct(right: Tensor, among: Tensor) -> Tensor:
    """The accuracy on the chosen inputs (seeds, n): (seeds,)."""
    return (right & among).double().sum(1) / among.double().sum(1)


def _weighted_mean(values: Tensor, weight: Tensor) -> Tensor:
    return (values.nan_to_num(0) * weight).sum(1) / weight.sum(1)


def _weighted_median(values: Tensor, weight: Tensor) -> Tensor:
    ordered, index = values.sort(1)
    shares = weight.gather(1, index).cumsum(1) / weight.sum(1, keepdim=True)
    return ordered.gather(1, (shares < 0.5).sum(1, keepdim=True)).squeeze(1)
