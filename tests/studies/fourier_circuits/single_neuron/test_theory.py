from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from assay.methods.modular_margin import margin_formula, max_margin, neuron_expected_margin
from assay.studies.fourier_circuits.single_neuron.theory import ascend
from assay.studies.fourier_circuits.theory import neuron_report


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("p", "k"), [(7, 2), (11, 2), (7, 3), (11, 3), (7, 4), (11, 4), (5, 5)])
def test_an_optimiser_that_knows_no_fourier_ends_at_one_cosine(p, k):
    U, W = ascend(normal(k, p, 20), normal(20, p, seed=1), 120)
    torch.testing.assert_close(
        neuron_expected_margin(U, W) / max_margin(p, k), torch.ones(20).double(), rtol=1e-10, atol=0
    )
    report = neuron_report(U, W)
    torch.testing.assert_close(report.norm, torch.ones(20).double())
    assert float(report.power.min()) > 1 - 1e-10
    assert float(report.phase_residual.max()) < 1e-7
    assert float(report.amplitude_spread.max()) < 1e-10
    assert bool(report.shared.all())


def test_ascent_never_lowers_the_objective():
    U, W = normal(3, 7, 5), normal(5, 7, seed=1)
    values = [neuron_expected_margin(*ascend(U, W, steps)) for steps in (1, 2, 5, 20)]
    for earlier, later in itertools.pairwise(values):
        assert bool((later >= earlier - 1e-15).all())


@pytest.mark.parametrize("k", [2, 3, 4])
def test_at_two_the_formula_does_not_apply(k):
    U, W = ascend(normal(k, 2, 10), normal(10, 2, seed=1), 60)
    best = float(neuron_expected_margin(U, W).max())
    assert best == pytest.approx(2 ** ((k - 1) / 2) * margin_formula(2, k))
    with pytest.raises(ValueError, match="p = 2"):
        max_margin(2, k)
