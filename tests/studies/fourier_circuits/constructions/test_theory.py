from __future__ import annotations

import itertools

import pytest
import torch

from assay.methods.modular_margin import (
    build_max_margin,
    margin_certificate,
    max_margin,
    network_logits,
    neuron_norms,
    neuron_phases,
)
from assay.studies.fourier_circuits.constructions.theory import (
    circle,
    circle_phases,
    construct,
    diagonal_transform,
    isolates,
    network_of,
)


@pytest.mark.parametrize(("p", "k"), [(5, 2), (5, 3), (7, 3)])
def test_the_maximum_margin_function_uses_every_frequency_equally(p, k):
    found = diagonal_transform(*build_max_margin(p, k))[1:]
    expected = torch.full((p - 1,), max_margin(p, k) * p**k, dtype=torch.complex128)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_a_single_neuron_vanishes_off_its_frequency():
    p, zeta = 7, 2
    U, W = build_max_margin(p, 2)
    one = slice(8 * (zeta - 1), 8 * (zeta - 1) + 1)
    inputs = torch.cartesian_prod(torch.arange(p), torch.arange(p))
    table = network_logits(U[..., one], W[one], inputs).reshape(p, p, p)
    transform = torch.fft.fftn(table).abs()
    for index in (transform > 1e-12).nonzero().tolist():
        assert 0 in index[:2] or all(j in (zeta, p - zeta) for j in index)


def test_a_network_of_phases_is_that_of_the_methods():
    offsets = torch.randn(3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ours, theirs = network_of(7, neuron_phases(3), offsets), build_max_margin(7, 3, offsets=offsets)
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("p", [3, 7, 9, 11, 13])
def test_seven_neurons_a_frequency_are_enough_for_two_inputs(p):
    U, W = network_of(p, circle_phases((1, 3), 7))
    assert U.shape == (2, p, 7 * (p - 1) // 2)
    assert float(margin_certificate(U, W).margin_ratio) == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize(("p", "k"), [(3, 2), (7, 2), (11, 2), (9, 2), (3, 3), (7, 3), (5, 4), (3, 5)])
def test_the_circle_reaches_the_maximum_margin_with_fewer_neurons(p, k):
    U, W = construct(p, k, "circle")
    assert U.shape[-1] == 3 ** (k - 1) * (p - 1) < 2 ** (2 * k - 2) * (p - 1)
    assert float(neuron_norms(U, W).pow(k + 1).sum()) == pytest.approx(1, rel=1e-12)
    inputs = torch.cartesian_prod(*[torch.arange(p)] * k)
    ideal = torch.nn.functional.one_hot(inputs.sum(1) % p, p).double() - 1 / p
    torch.testing.assert_close(network_logits(U, W, inputs) / max_margin(p, k), ideal, rtol=0, atol=1e-10)


def test_which_circles_isolate_the_sum():
    assert all(isolates(*circle(k)) for k in range(2, 6))
    assert isolates((1, 3), 7)
    for k in (2, 3):
        smaller = range(2, circle(k)[1])
        assert not any(isolates(g, n) for n in smaller for g in itertools.product(range(n), repeat=k))


def test_a_circle_that_does_not_isolate_misses_the_margin():
    assert not isolates((1, 2), 7)
    assert float(margin_certificate(*network_of(7, circle_phases((1, 2), 7))).margin_ratio) < 0.999
