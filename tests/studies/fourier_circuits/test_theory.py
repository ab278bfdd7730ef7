from __future__ import annotations

import math

import pytest
import torch

from assay.methods.modular_margin import build_max_margin
from assay.studies.fourier_circuits.theory import neuron_report, sparsity
from assay.training.seeds import Seeds


def test_the_report_of_a_network_known_by_hand():
    a = 2 * math.pi * torch.arange(11, dtype=torch.float64) / 11
    U = torch.stack([(0.5 + 3 * a).cos(), (1.0 + 3 * a).cos()]).unsqueeze(-1)
    W = 2 * (1.7 + 3 * a).cos().unsqueeze(0)
    report = neuron_report(U, W)
    assert int(report.frequency) == 3
    assert float(report.power) == pytest.approx(1)
    assert float(report.phase_residual) == pytest.approx(0.2)
    assert bool(report.shared)
    assert float(report.amplitude_spread) == pytest.approx(1 / (4 / 3))
    mixed = neuron_report(U, 2 * (1.7 + 4 * a).cos().unsqueeze(0))
    assert not bool(mixed.shared)


def test_sparsity_weighs_neurons_by_what_they_contribute():
    U, W = (part.unsqueeze(0) for part in build_max_margin(7, 3))
    noise = 0.02 * Seeds((0,), dtype=torch.float64).normal("noise", *U.shape[1:])
    found = sparsity(torch.cat([U, noise], -1), torch.cat([W, 0 * W], 1))
    assert float(found["power_weighted"]) > 0.99 > float(found["power_by_norm"]) > float(found["power_mean"])
    assert float(found["power_low"]) < 0.9
    without = sparsity(U[..., 32:], W[:, 32:])
    assert float(without["frequencies"]) == pytest.approx(2 / 3)
    assert math.isinf(float(without["frequency_ratio"]))
