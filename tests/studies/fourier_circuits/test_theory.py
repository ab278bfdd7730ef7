from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from torch import Tensor

from assay.methods.modular_margin import neuron_expected_margin
from assay.studies.fourier_circuits import theory


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("p", "k"), [(7, 2), (11, 2), (7, 3), (11, 3), (7, 4), (11, 4), (5, 5)])
def test_an_optimiser_that_knows_no_fourier_ends_at_one_cosine(p, k):
    U, W = theory.ascend(normal(k, p, 20), normal(20, p, seed=1), 120)
    torch.testing.assert_close(
        neuron_expected_margin(U, W) / theory.max_margin(p, k), torch.ones(20).double(), rtol=1e-10, atol=0
    )
    report = theory.neuron_report(U, W)
    torch.testing.assert_close(report.norm, torch.ones(20).double())
    assert float(report.power.min()) > 1 - 1e-10
    assert float(report.phase_residual.max()) < 1e-7
    assert float(report.amplitude_spread.max()) < 1e-10
    assert bool(report.shared.all())


def test_ascent_never_lowers_the_objective():
    U, W = normal(3, 7, 5), normal(5, 7, seed=1)
    values = [neuron_expected_margin(*theory.ascend(U, W, steps)) for steps in (1, 2, 5, 20)]
    for earlier, later in itertools.pairwise(values):
        assert bool((later >= earlier - 1e-15).all())


@pytest.mark.parametrize("k", [2, 3, 4])
def test_at_two_the_formula_does_not_apply(k):
    U, W = theory.ascend(normal(k, 2, 10), normal(10, 2, seed=1), 60)
    best = float(neuron_expected_margin(U, W).max())
    assert best == pytest.approx(2 ** ((k - 1) / 2) * theory.margin_formula(2, k))
    with pytest.raises(ValueError, match="p = 2"):
        theory.max_margin(2, k)


def test_the_sum_of_cosines_is_minus_a_half_at_wrong_labels():
    for p in (3, 7, 9, 23):
        sums = theory.cosine_sum(p)
        assert float(sums[0]) == pytest.approx((p - 1) / 2)
        torch.testing.assert_close(sums[1:], torch.full((p - 1,), -0.5, dtype=torch.float64))
    with pytest.raises(ValueError, match="p = 8"):
        theory.cosine_sum(8)


@given(st.integers(2, 7), st.integers(0, 1000))
def test_polarisation(k, seed):
    d = normal(k, seed=seed)
    size = float(d.abs().sum()) ** k * 2**k
    assert float(theory.polarisation(d)) == pytest.approx(
        2**k * math.factorial(k) * float(d.prod()), rel=1e-9, abs=1e-13 * size
    )


@given(st.integers(1, 6), st.integers(0, 1000))
def test_sum_to_product(k, seed):
    x, c = 3 * normal(4, k, seed=seed), 3 * normal(4, seed=seed + 1)
    torch.testing.assert_close(theory.sum_to_product(x, c), torch.cos(x.sum(-1) - c), rtol=0, atol=1e-12)


def test_sine_is_phase_minus_a_quarter_turn():
    a, c = 6 * normal(20, 3), 6 * normal(20, seed=1)
    wanted = -24 * a[:, 0].sin() * a[:, 1].sin() * a[:, 2].cos() * c.cos()
    neurons = {}
    for quarter in (-math.pi / 2, math.pi / 2):  # ours, and the source's k = 3 example
        d = torch.cos(a + torch.tensor([quarter, quarter, 0.0], dtype=torch.float64))
        neurons[quarter] = [
            s2 * s3 * (d[:, 0] + s2 * d[:, 1] + s3 * d[:, 2]).pow(3) * torch.cos(c + 2 * quarter)
            for s2 in (1, -1)
            for s3 in (1, -1)
        ]
        torch.testing.assert_close(sum(neurons[quarter]), wanted)
    for ours, printed in zip(*neurons.values(), strict=True):
        assert float((ours - printed).abs().max()) > 0.1, "one by one the neurons differ; their sum does not"


@pytest.mark.parametrize(("p", "k"), [(5, 2), (5, 3), (7, 3)])
def test_the_maximum_margin_function_uses_every_frequency_equally(p, k):
    found = theory.diagonal_transform(*theory.build_max_margin(p, k))[1:]
    expected = torch.full((p - 1,), theory.max_margin(p, k) * p**k, dtype=torch.complex128)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_a_single_neuron_vanishes_off_its_frequency():
    p, zeta = 7, 2
    U, W = theory.build_max_margin(p, 2)
    one = slice(8 * (zeta - 1), 8 * (zeta - 1) + 1)
    inputs = torch.cartesian_prod(torch.arange(p), torch.arange(p))
    table = theory.network_logits(U[..., one], W[one], inputs).reshape(p, p, p)
    transform = torch.fft.fftn(table).abs()
    for index in (transform > 1e-12).nonzero().tolist():
        assert 0 in index[:2] or all(j in (zeta, p - zeta) for j in index)


def test_the_report_of_a_network_known_by_hand():
    a = 2 * math.pi * torch.arange(11, dtype=torch.float64) / 11
    U = torch.stack([(0.5 + 3 * a).cos(), (1.0 + 3 * a).cos()]).unsqueeze(-1)
    W = 2 * (1.7 + 3 * a).cos().unsqueeze(0)
    report = theory.neuron_report(U, W)
    assert int(report.frequency) == 3
    assert float(report.power) == pytest.approx(1)
    assert float(report.phase_residual) == pytest.approx(0.2)
    assert bool(report.shared)
    assert float(report.amplitude_spread) == pytest.approx(1 / (4 / 3))
    mixed = theory.neuron_report(U, 2 * (1.7 + 4 * a).cos().unsqueeze(0))
    assert not bool(mixed.shared)


@given(st.integers(1, 12).map(lambda n: 2 * n + 1), st.integers(0, 100))
def test_interpolation_goes_through_the_points(p, seed):
    u = np.random.default_rng(seed).normal(size=p)
    np.testing.assert_allclose(theory.trigonometric_interpolation(u, np.arange(p)), u, atol=1e-10)
    fine = np.linspace(0, p, 50)
    wave = np.cos(0.3 + 2 * np.pi * np.arange(p) / p)
    np.testing.assert_allclose(
        theory.trigonometric_interpolation(wave, fine), np.cos(0.3 + 2 * np.pi * fine / p), atol=1e-10
    )


def minimise(p: int, k: int, penalty: float) -> tuple[float, float, float]:
    """The convex problem over the frequencies' weights, solved by a general method: (value, margin, mass)."""
    half = (p - 1) // 2
    waves = np.cos(2 * np.pi / p * (np.outer(np.arange(p), np.arange(1, half + 1)) % p))
    price = p / ((p - 1) * theory.max_margin(p, k))  # norm^{k+1} that one unit of a cosine costs

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        logits = waves @ v
        weights = np.exp(logits - logits.max())
        loss = math.log(weights.sum()) + logits.max() - logits[0]
        return loss + penalty * price * v.sum(), waves.T @ (weights / weights.sum()) - waves[0] + penalty * price

    start = np.random.default_rng(0).uniform(0.5, 1.5, half)
    found = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * half,
                              options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000})  # fmt: skip
    logits = waves @ found.x
    return float(found.fun), float(logits[0] - logits[1:].max()), float(price * found.x.sum())


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([(7, 3), (11, 2), (9, 2), (15, 2), (5, 4)]), st.floats(1e-6, 0.95))
def test_the_regularised_minimum_is_the_closed_form_at_every_strength(pair, share):
    p, k = pair
    penalty = share * theory.vanishing_penalty(p, k)
    value, margin, mass = minimise(p, k, penalty)
    assert theory.regularised_optimum(p, k, penalty) == pytest.approx(value, rel=1e-7)
    assert theory.regularised_gap(p, k, penalty) == pytest.approx(margin, rel=1e-3)
    assert margin / mass == pytest.approx(theory.max_margin(p, k), rel=1e-3), "the normalised margin is γ* at any λ"


def test_the_scaled_construction_is_stationary_for_the_regularised_objective():
    p, k, penalty = 5, 3, 1e-3
    U, W = theory.build_max_margin(p, k, "thirds")
    scale = (theory.regularised_gap(p, k, penalty) / theory.max_margin(p, k)) ** (1 / (k + 1))
    U, W = (scale * U).requires_grad_(True), (scale * W).requires_grad_(True)
    inputs = torch.cartesian_prod(*[torch.arange(p)] * k)
    loss = torch.nn.functional.cross_entropy(theory.network_logits(U, W, inputs), inputs.sum(1) % p)
    objective = loss + penalty * (U.square().sum((0, 1)) + W.square().sum(1)).pow((k + 1) / 2).sum()
    assert float(objective.detach()) == pytest.approx(theory.regularised_optimum(p, k, penalty), rel=1e-12)
    for gradient in torch.autograd.grad(objective, (U, W)):
        assert float(gradient.abs().max()) < 1e-14
    assert theory.regularised_gap(p, k, 1.01 * theory.vanishing_penalty(p, k)) == 0
    assert theory.regularised_optimum(p, k, 1.0) == pytest.approx(math.log(p))
